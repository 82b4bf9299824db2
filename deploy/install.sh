#!/bin/sh
# Installs a built brewbench with its targets, systemd units and users. Starts nothing.
# usage: [PREFIX=/usr/local] [DESTDIR=] install.sh PROGRAM-FOLDER SERVER-UNIT-FOLDER AGENT-UNIT-FOLDER
# In a release archive the defaults are right: run ./install.sh without arguments.
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
# Copies to a temporary name and renames, because a running program cannot be overwritten.
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
installed in $lib; next, as root:
  systemd-sysusers && systemctl daemon-reload
  systemctl enable --now brewbench          # configuration: /etc/brewbench/server.env
  systemctl enable --now brewbench-agent    # configuration: /etc/brewbench/agent.env; scripts need k6 in PATH, or BREWBENCH_K6
EOF
