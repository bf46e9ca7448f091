#!/bin/sh
# Fetches a token and asks which taxpayer it represents. Needs curl 7.76 or newer. First, with your values:
#   export CLIENT_ID=... CLIENT_SECRET=...
#   export ONBEHALFOF=...    only to act for another taxpayer: TIN or TIN:ROB
set -eu
AUTH_URL=http://127.0.0.1:8000
: "${CLIENT_ID:?set it to your client ID}" "${CLIENT_SECRET:?set it to your client secret}"

# The form comes from standard input, so that no list of processes shows the secret.
# --retry waits as long as Retry-After says. A refusal is shown: error_description says what to do.
answer=$(printf 'grant_type=client_credentials&client_id=%s&client_secret=%s' \
    "$CLIENT_ID" "$CLIENT_SECRET" |
  curl --silent --show-error --fail-with-body --retry 3 --max-time 10 \
    ${ONBEHALFOF:+--header "onbehalfof: $ONBEHALFOF"} \
    --data-binary @- "$AUTH_URL/connect/token") || { printf '%s\n' "$answer" >&2; exit 1; }
token=$(printf '%s' "$answer" | sed -n 's/.*"access_token": *"\([^"]*\)".*/\1/p')

# Use it for every call. Fetch the next one at a random moment between half and nine tenths of
# expires_in; if that gets 429, 503 or no answer, go on with this one until it ends, and try again.
for call in 1 2; do
  curl --silent --show-error --fail-with-body --header "Authorization: Bearer $token" \
    "$AUTH_URL/api/v1/me"
  echo
done
