#!/bin/sh
# A standby that follows the primary by streaming: at its first start a copy of the primary, then PostgreSQL.
# "$@" goes to PostgreSQL.
set -eu
secrets=${SECRETS:-/run/secrets}
: "${PGDATA:?}" "${PRIMARY:?the host of the primary}"
umask 077
PGPASSFILE=${TMPDIR:-/tmp}/standby.pgpass
export PGPASSFILE
printf '*:*:*:standby:%s\n' "$(cat "$secrets/replication_password")" >"$PGPASSFILE"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  # Under another name until it is complete: a copy that was interrupted is made anew.
  rm -rf "$PGDATA.new"
  pg_basebackup --dbname="host=$PRIMARY port=${PRIMARY_PORT:-5432} user=standby application_name=standby passfile=$PGPASSFILE" \
    --pgdata="$PGDATA.new" --slot=standby --wal-method=stream --checkpoint=fast --write-recovery-conf
  mv "$PGDATA.new" "$PGDATA"
fi
exec postgres "$@"
