#!/bin/sh
# Fetches tokens and asks which taxpayer each represents. Needs curl 7.76 or newer. First, with your values:
#   export CLIENT_ID=... CLIENT_SECRET=...
#   export ONBEHALFOF=...    only to act for other taxpayers: TIN or TIN:ROB
set -eu
AUTH_URL=http://127.0.0.1:8000
: "${CLIENT_ID:?set it to your client ID}" "${CLIENT_SECRET:?set it to your client secret}"
tokens=$(mktemp -d) # only you can read it
trap 'rm -rf "$tokens"' EXIT

between() { awk -v a="$1" -v b="$2" 'BEGIN { srand(); print a + (b - a) * rand() }'; }

log_in() { # TAXPAYER: stores when to fetch the next token, when this one ends, failures, and it
  attempt=1 ends_at=0
  [ ! -f "$tokens/$1.token" ] || read -r _ ends_at failures token <"$tokens/$1.token"
  [ "$(date +%s)" -ge "$ends_at" ] || attempt=$((failures + 1))
  while :; do
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
        if [ "$(date +%s)" -lt "$ends_at" ]; then
          later=$(between "$least" "$((least + (least + 1) / 2))")
          next=$(($(date +%s) + ${later%.*}))
          [ "$next" -lt "$ends_at" ] || next=$ends_at
          echo "$next $ends_at $attempt $token" >"$tokens/$1.token"
          return
        fi
        [ "$attempt" -le 5 ] || { printf '%s\n' "${answer:-No answer.}" >&2; exit 1; }
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
  now=$(date +%s)
  echo "$((now + seconds * ${share%.*} / 100)) $((now + seconds)) 0 $token" >"$tokens/$1.token"
}

get() { # URL TAXPAYER: a token that the API does not take any more (401) is replaced once
  for try in 1 2; do
    renew_at=0
    [ ! -f "$tokens/$2.token" ] || read -r renew_at _ _ token <"$tokens/$2.token"
    [ "$(date +%s)" -lt "$renew_at" ] || log_in "$2"
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
