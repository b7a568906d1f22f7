#!/bin/sh
# postgres.sh BIN FOLDER [-c name=value ...]: runs a PostgreSQL server for tests, on a Unix socket in FOLDER, and obeys
# its standard input: "stop fast", "stop immediate", "start". When that ends, because whoever started this was done or
# was killed, the server is ended and FOLDER removed. The log of the server is standard error; "stopped" is said on
# standard output.
set -u
trap '' INT TERM HUP
bin=$1 folder=$2
shift 2
user=
# PostgreSQL refuses to run as root.
if [ "$(id -u)" = 0 ]; then
  user='--reuid=postgres --regid=postgres --init-groups'
  chown postgres "$folder"
fi
server=
start() {
  # The server ends with this shell, should it be killed.
  # shellcheck disable=SC2086
  setpriv $user --pdeathsig QUIT "$bin/postgres" -D "$folder/data" -k "$folder" "$@" </dev/null >/dev/null &
  server=$!
}
stop() {
  [ -n "$server" ] || return 0
  kill "-$1" "$server"
  wait "$server"
  server=
}
cd /
# Texts are ordered as people do, as on most servers, and not by their bytes: what relies on that shows.
# shellcheck disable=SC2086
setpriv $user "$bin/initdb" -D "$folder/data" -U svc --auth=trust --encoding=UTF8 --locale=C.UTF-8 \
  --locale-provider=icu --icu-locale=en-US --no-sync --no-instructions >/dev/null && start "$@"
while read -r command; do
  case $command in
    'stop fast') stop INT && echo stopped ;;
    'stop immediate') stop QUIT && echo stopped ;;
    start) start "$@" ;;
  esac
done
stop QUIT
rm -rf "$folder"
