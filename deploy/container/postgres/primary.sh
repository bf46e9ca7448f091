#!/bin/sh
# Run once by the image of PostgreSQL when the primary's folder is empty: the role and the database of the
# service, and the role and the slot of the standby. Passwords come from the secrets.
set -eu
secrets=${SECRETS:-/run/secrets}
psql --set=ON_ERROR_STOP=1 --quiet --no-psqlrc --username "${POSTGRES_USER:-postgres}" --dbname postgres <<SQL
\\set identity_password \`cat $secrets/database_password\`
\\set standby_password \`cat $secrets/replication_password\`
CREATE ROLE identity LOGIN PASSWORD :'identity_password';
CREATE DATABASE identity OWNER identity;
CREATE ROLE standby LOGIN REPLICATION PASSWORD :'standby_password';
SELECT slot_name FROM pg_create_physical_replication_slot('standby') \\g /dev/null
SQL
echo 'host replication standby all scram-sha-256' >>"$PGDATA/pg_hba.conf"
