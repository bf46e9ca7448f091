#!/bin/sh
# Fetches tokens and asks which taxpayer each represents. Needs curl 7.76 or newer. First, with your values:
#   export CLIENT_ID=... CLIENT_SECRET=...
#   export ONBEHALFOF=...    only to act for other taxpayers: TIN or TIN:ROB
set -eu
AUTH_URL=http://127.0.0.1:8000
: "${CLIENT_ID:?set it to your client ID}" "${CLIENT_SECRET:?set it to your client secret}"
tokens=$(mktemp -d) # only you can read it
trap 'rm -rf "$tokens"' EXIT

between() { # another number for each client, also in the same second
  awk -v a="$1" -v b="$2" -v seed="$(od -An -N4 -tu4 /dev/urandom)" \
    'BEGIN { srand(seed); print a + (b - a) * rand() }'
}

log_in() { # TAXPAYER: stores when to fetch the next token, when this one ends, failures, and it
  renew_at=0 ends_at=0 failures=0
  [ ! -f "$tokens/$1.token" ] || read -r renew_at ends_at failures token <"$tokens/$1.token"
  attempt=$((failures + 1)) now=$(date +%s)
  [ "$now" -ge "$renew_at" ] || sleep "$((renew_at - now))" # it ended before the pause
  while :; do
    asked_at=$(date +%s) # before the answer, which may be slow
    : >"$tokens/headers"
    # The form comes from standard input, so that no list of processes shows the secret.
    answer=$(printf 'grant_type=client_credentials&client_id=%s&client_secret=%s' \
        "$CLIENT_ID" "$CLIENT_SECRET" |
      curl --silent --max-time 10 --dump-header "$tokens/headers" \
        ${1:+--header "onbehalfof: $1"} --data-binary @- "$AUTH_URL/connect/token") || answer=
    status=$(sed -n '1s/^[^ ]* \([0-9]*\).*/\1/p' "$tokens/headers")
    [ "$status" != 200 ] || break
    # Longer after each failure, but not the same for all.
    pause=$(sed -n 's/^[Rr]etry-[Aa]fter: *\([0-9]*\).*/\1/p' "$tokens/headers")
    least=$((${pause:-1} << (attempt < 7 ? attempt - 1 : 6)))
    case $attempt:${answer:+$status} in
      *: | *:429 | *:503) # it is safe to repeat; the old token goes on until it ends
        printf '%s\n' "${answer:-No answer.}" >&2 # your log
        if [ "$(date +%s)" -lt "$ends_at" ]; then
          later=$(between "$least" "$((least + (least + 1) / 2))")
          echo "$(($(date +%s) + ${later%.*} + 1)) $ends_at $attempt $token" >"$tokens/$1.token"
          return
        fi
        [ "$attempt" -le 5 ] || exit 1
        ;;
      *) printf '%s\n' "${answer:-The service does not answer.}" >&2; exit 1 ;; # error_description
    esac
    sleep "$(between "$least" "$((least + (least + 1) / 2))")"
    attempt=$((attempt + 1))
  done
  token=$(printf '%s' "$answer" | sed -n 's/.*"access_token": *"\([^"]*\)".*/\1/p')
  seconds=$(printf '%s' "$answer" | sed -n 's/.*"expires_in": *\([0-9]*\).*/\1/p')
  # At a random moment, so that not all clients come at once.
  share=$(between 50 90)
  echo "$((asked_at + seconds * ${share%.*} / 100)) $((asked_at + seconds)) 0 $token" >"$tokens/$1.token"
}

get() { # URL TAXPAYER: a token that the API does not take any more (401) is replaced once
  for try in 1 2; do
    renew_at=0 ends_at=0 now=$(date +%s)
    [ ! -f "$tokens/$2.token" ] || read -r renew_at ends_at _ token <"$tokens/$2.token"
    { [ "$now" -lt "$renew_at" ] && [ "$now" -lt "$ends_at" ]; } || log_in "$2"
    answer=$(curl --silent --show-error --write-out '\n%{http_code}' \
      --header "Authorization: Bearer $token" "$1")
    [ "${answer##*[!0-9]}" = 401 ] || break
    rm "$tokens/$2.token"
  done
  printf '%s' "${answer%???}"
}

# One token of each taxpayer for all calls.
call=1
while [ $call -le "${CALLS:-2}" ]; do
  for taxpayer in ${ONBEHALFOF:-own}; do
    get "$AUTH_URL/api/v1/me" "${taxpayer#own}"
  done
  call=$((call + 1))
done
