#!/bin/sh
# Installs a built brewbench with its targets, its services and their users. Nothing is started.
# usage: [PREFIX=/usr/local] [DESTDIR=] install.sh FOLDER-OF-THE-PROGRAM FOLDER-OF-THE-SERVER'S-UNIT FOLDER-OF-THE-AGENT'S-UNIT
# In a release archive all three are the archive's own folders: ./install.sh does.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here}
server=${2:-$here/systemd}
agent=${3:-$here/systemd}
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
lib=$prefix/lib/brewbench
units=$root${UNITDIR:-$prefix/lib/systemd/system}

install -d "$root$lib/targets/bin" "$root$prefix/bin" "$units" "$root$prefix/lib/sysusers.d"
# Beside the old one first: a program that runs can't be written over.
install -m 755 "$program/brewbench" "$root$lib/.brewbench.new"
mv -f "$root$lib/.brewbench.new" "$root$lib/brewbench"
install -m 644 "$program"/targets/*.toml "$root$lib/targets/"
install -m 755 "$program"/targets/bin/* "$root$lib/targets/bin/"
ln -sfn "../lib/brewbench/brewbench" "$root$prefix/bin/brewbench"
for unit in "$server/brewbench.service" "$agent/brewbench-agent.service"; do
	sed "s|@LIB@|$lib|" "$unit" >"$units/$(basename "$unit")"
	chmod 644 "$units/$(basename "$unit")"
done
install -m 644 "$server/brewbench.sysusers" "$root$prefix/lib/sysusers.d/brewbench.conf"

[ -n "$root" ] || cat <<EOF
installed in $lib; then, as root:
  systemd-sysusers && systemctl daemon-reload
  systemctl enable --now brewbench          # what it is told: /etc/brewbench/server.env
  systemctl enable --now brewbench-agent    # and: /etc/brewbench/agent.env; it needs k6 in PATH, or BREWBENCH_K6
EOF
