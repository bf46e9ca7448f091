#!/bin/sh
# Makes the secrets of compose.yaml in the folder `secrets` beside it, once: what exists is not changed.
# The folder is closed to other users of the machine; its files are not, because each container has
# its own user and gets only the files that it needs.
set -eu
umask 022
folder=${1:-$(dirname "$0")/secrets}
mkdir -p "$folder"
chmod 0700 "$folder"

random() { od -An -N 32 -t x1 /dev/urandom | tr -d ' \n'; }

create() {  # NAME VALUE
  [ -e "$folder/$1" ] || { printf '%s\n' "$2" >"$folder/$1.new" && mv "$folder/$1.new" "$folder/$1"; }
}

create secret_key "$(random)"
create key_encryption_keys "$(random)"
create postgres_password "$(random)"
create database_password "$(random)"
create replication_password "$(random)"
password=$(cat "$folder/database_password")
create database_url "postgresql://identity:$password@pooler:6432/identity?pooling=transaction"
create direct_database_url "postgresql://identity:$password@primary:5432/identity"
create pooler_users "\"identity\" \"$password\""
