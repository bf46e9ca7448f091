#!/bin/sh
# nginx with deploy/nginx.conf itself: its hosts, nodes, ports, files and the network of the staff are
# replaced by those of the environment.
#
#   proxy.sh         in a container (compose.yaml, deploy/helm/): nginx 1.27.3 or newer, which finds nodes
#                    by name again when they get new addresses. It loads a renewed certificate by itself.
#   proxy.sh site    for the nginx of this machine: SITE is written from /etc/identity/proxy.env
set -eu

mode=container
[ "${1:-}" != site ] || mode=site
if [ $mode = site ]; then
  NGINX_CONF=$(dirname "$0")/../nginx.conf HTTP_PORT=80 HTTPS_PORT=443
  . "$(dirname "${IDENTITY_ENV:-/etc/identity/identity.env}")/proxy.env"
fi
: "${PUBLIC_HOST:?the host name that ERP systems call}"
: "${STAFF_HOST:?the host name that staff open}"
: "${LOGIN_NODES:?the login nodes, as name:port, separated by blanks}"
: "${STAFF_NODES:?the staff nodes, as name:port, separated by blanks}"
: "${STAFF_NETWORKS:?the networks of the staff, separated by blanks}"
original=${NGINX_CONF:-/etc/identity/nginx.conf}
folder=${NGINX_DIR:-/tmp/nginx}
certificate=${TLS_CERTIFICATE:-/run/secrets/tls.crt}
key=${TLS_KEY:-/run/secrets/tls.key}
authorities=${CLIENT_AUTHORITIES:-/run/secrets/client-authorities.pem}
secret_file=${PROXY_SECRET_FILE:-/run/secrets/PROXY_SECRET}  # with a former one: the first counts
mtls_host=${MTLS_HOST:-}  # empty: no client certificates, and no server that asks for them

if [ $mode = container ]; then
  mkdir -p "$folder"
  service=$folder/service.conf secret_conf=$folder/proxy-secret.conf
else
  service=${SITE:?the file that nginx includes}.new secret_conf=$SITE.secret
fi

# Each line that is replaced must be there: deploy/nginx.conf does not change unnoticed.
replace() {
  grep -Eq -- "$1" "$service" || { echo "$original has no line with $1" >&2; exit 1; }
  sed -E "s|$1|$2|g" "$service" >"$service.new"
  mv "$service.new" "$service"
}

servers() {  # one directive for each node
  parameters=$1
  shift
  for node; do
    by_name=' resolve'
    case $node in \[* | [0-9]*.[0-9]*.[0-9]*.[0-9]*:*) by_name='' ;; esac
    printf 'server %s%s%s; ' "$node" "$parameters" "$by_name"
  done
}

without() {  # leaves out the server blocks of these names, as a pattern
  awk -v names="$1" '
    /^server [{]/ { inside = 1; block = ""; dropped = 0 }
    inside {
      block = block $0 "\n"
      if ($0 ~ "server_name (" names ");") dropped = 1
      if ($0 ~ /^}/) { inside = 0; if (!dropped) printf "%s", block }
      next
    }
    { print }
  ' "$original"
}

# ONLY: public or staff, for an nginx that has the servers of one half; by default both. The public one
# reaches the staff nodes too, for /confirm/ only.
dropped=none
[ "$mtls_host" ] || dropped='mtls[.]id[.]example[.]org'
[ "${ONLY:-}" != public ] || dropped="$dropped|staff[.]id[.]example[.]org"
[ "${ONLY:-}" != staff ] || dropped='id[.]example[.]org|mtls[.]id[.]example[.]org' mtls_host=''
without "$dropped" >"$service"

replace '/etc/ssl/id\.example\.org\.pem' "$certificate"
replace '/etc/ssl/id\.example\.org\.key' "$key"
if [ "$mtls_host" ]; then
  replace '/etc/ssl/client-authorities\.pem' "$authorities"
  replace '/etc/nginx/proxy-secret\.conf' "$secret_conf"
  secret=$(cut -d, -f1 "$secret_file" | tr -d ' \r\n')
  case $secret in
    '' | *[!A-Za-z0-9_-]*) echo "$secret_file has no PROXY_SECRET of letters, digits, _ and -" >&2; exit 1 ;;
  esac
  (umask 077 && printf 'proxy_set_header X-Proxy-Secret "%s";\n' "$secret" >"$secret_conf")
  replace 'server_name mtls\.id\.example\.org;' "server_name $mtls_host;"
  [ ! "${CLIENT_REVOCATIONS:-}" ] || replace 'ssl_verify_client ' "ssl_crl $CLIENT_REVOCATIONS; ssl_verify_client "
fi
if [ "${ONLY:-}" != public ]; then
  replace 'server_name staff\.id\.example\.org;' "server_name $STAFF_HOST;"
  allowed=''
  for network in $STAFF_NETWORKS; do allowed="$allowed allow $network;"; done
  replace 'allow 10\.0\.0\.0/8;' "$allowed"
fi
if [ "${ONLY:-}" != staff ]; then
  replace 'server_name id\.example\.org;' "server_name $PUBLIC_HOST;"
  replace 'listen 80;' "listen ${HTTP_PORT:-8080};"
fi
replace 'https://id\.example\.org/' "https://$PUBLIC_HOST/"
replace 'listen 443 ssl;' "listen ${HTTPS_PORT:-8443} ssl;"
replace 'server 127\.0\.0\.1:8001 max_fails=0;' ''  # first: the node that is put in may be this one
# shellcheck disable=SC2086 - a list
replace 'server 127\.0\.0\.1:8000 max_fails=0;' "$(servers ' max_fails=0' $LOGIN_NODES)"
# shellcheck disable=SC2086 - a list
replace 'server 127\.0\.0\.1:8002;' "zone staff_nodes 64k; $(servers '' $STAFF_NODES)"

if [ $mode = site ]; then  # the former file again, if nginx finds a fault in this one
  [ ! -e "$SITE" ] || cp -p "$SITE" "$SITE.before"
  mv "$service" "$SITE"
  nginx -t || { rm -f "$SITE"; [ ! -e "$SITE.before" ] || mv "$SITE.before" "$SITE"; exit 1; }
  rm -f "$SITE.before"
  exec systemctl reload nginx
fi

replace 'access_log /var/log/nginx/login\.log ' 'access_log /dev/stdout '
[ "${ONLY:-}" = staff ] || replace 'error_log  /var/log/nginx/error\.log crit;' 'error_log  stderr crit;'

# Names are looked up where the container looks them up; an IPv6 address goes between brackets.
resolver=${RESOLVER:-$(awk '$1 == "nameserver" { print ($2 ~ /:/) ? "[" $2 "]" : $2; exit }' /etc/resolv.conf)}

cat >"$folder/nginx.conf" <<END
daemon off;
worker_processes auto;
worker_rlimit_nofile 65536;
pid $folder/nginx.pid;
error_log stderr warn;
events { worker_connections 16384; }
http {
    resolver $resolver valid=5s;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    include $service;
}
END

# Certificates are renewed while nginx runs: it reads its files again when one of them has changed.
[ $# = 0 ] || exec nginx -e stderr -c "$folder/nginx.conf" "$@"
checksum() { cat "$certificate" "$key" "$authorities" ${CLIENT_REVOCATIONS:-} 2>/dev/null | cksum; }
seen=$(checksum)
(
  while sleep "${WATCH_SECONDS:-30}" && kill -0 $$; do
    now=$(checksum)
    [ "$now" = "$seen" ] || ! nginx -e stderr -c "$folder/nginx.conf" -t || {
      nginx -e stderr -c "$folder/nginx.conf" -s reload
      seen=$now
    }
  done
) &
exec nginx -e stderr -c "$folder/nginx.conf"
