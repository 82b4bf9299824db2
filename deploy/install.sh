#!/bin/sh
# Installs brewbench with its targets, systemd units, users and samples of the configuration. Starts nothing.
# usage: [PREFIX=/usr/local] [DESTDIR=] install.sh [PROGRAM-FOLDER]
#        [PREFIX=/usr/local] [DESTDIR=] install.sh --remove
# An upgrade keeps what was edited below /etc/brewbench. --remove keeps /etc/brewbench and the data in /var/lib.
set -eu
umask 022
here=$(cd "$(dirname "$0")" && pwd)
prefix=${PREFIX:-/usr/local}
root=${DESTDIR:-}
lib=$prefix/lib/brewbench
config=$root/etc/brewbench
# Where systemd looks.
case $prefix in
  /usr | /usr/local) systemd=$root$prefix/lib ;;
  *) systemd=$root/etc ;;
esac
completions="bash-completion/completions/brewbench fish/vendor_completions.d/brewbench.fish zsh/site-functions/_brewbench"

remove() {
  [ -n "$root" ] || ! command -v systemctl >/dev/null || systemctl disable --now brewbench brewbench-agent 2>/dev/null || true
  rm -rf "$root$lib" "$root$prefix/share/doc/brewbench" "$root$prefix"/share/man/man1/brewbench.1 "$root$prefix"/share/man/man1/brewbench-*.1
  rm -f "$root$prefix/bin/brewbench" "$systemd/systemd/system/brewbench.service" "$systemd/systemd/system/brewbench-agent.service" \
    "$systemd/sysusers.d/brewbench.conf"
  for file in $completions; do rm -f "$root$prefix/share/$file"; done
  [ -n "$root" ] || echo "removed; what remains: /etc/brewbench, /var/lib/brewbench*, and the users brewbench and brewbench-agent"
}

# A manifest whose program has an absolute path.
manifest() {
  sed "s|\"bin/|\"$lib/targets/bin/|" "$1"
}

# What an earlier version installed is replaced unless somebody has edited it.
install_manifests() {
  for name in go-nethttp rust-hyper rust-hyper-slow; do
    to=$config/targets/$name.toml
    former=$root$lib/targets/$name.toml
    if [ ! -e "$to" ] || { [ -e "$former" ] && manifest "$former" | cmp -s - "$to"; }; then
      manifest "$program/targets/$name.toml" >"$to"
    elif ! manifest "$program/targets/$name.toml" | cmp -s - "$to"; then
      echo "kept, because it was edited: $to"
    fi
    install -m 644 "$program/targets/$name.toml" "$former"
  done
}

# Man pages, completions and texts: a release has them, a build has not.
install_documents() {
  [ -d "$program/man" ] || return 0
  install -d "$root$prefix/share/man/man1" "$root$prefix/share/doc/brewbench"
  install -m 644 "$program"/man/*.1 "$root$prefix/share/man/man1/"
  install -m 644 "$program/README.md" "$program/LICENSE" "$program/CHANGELOG.md" "$program/LICENSES.txt" "$root$prefix/share/doc/brewbench/"
  for file in $completions; do install -D -m 644 "$program/completions/$(basename "$file")" "$root$prefix/share/$file"; done
}

[ "${1:-}" != --remove ] || { remove; exit; }
program=${1:-$here}
install -d "$root$lib/targets/bin" "$root$prefix/bin" "$systemd/systemd/system" "$systemd/sysusers.d" "$config/targets"
# Copies to a temporary name and renames, because a running program cannot be overwritten.
for file in brewbench targets/bin/go-nethttp targets/bin/rust-hyper; do
  install -m 755 "$program/$file" "$root$lib/$file.new"
  mv -f "$root$lib/$file.new" "$root$lib/$file"
done
ln -sfn ../lib/brewbench/brewbench "$root$prefix/bin/brewbench"
install_manifests
for name in server agent; do
  [ -e "$config/$name.env" ] || install -m 600 "$here/systemd/$name.env" "$config/$name.env"
done
for unit in brewbench brewbench-agent; do
  sed "s|@LIB@|$lib|" "$here/systemd/$unit.service" >"$systemd/systemd/system/$unit.service"
done
install -m 644 "$here/systemd/brewbench.sysusers" "$systemd/sysusers.d/brewbench.conf"
install_documents

[ -n "$root" ] || cat <<END
installed in $lib; next, as root:
  systemd-sysusers && systemctl daemon-reload
  systemctl enable --now brewbench          # configuration: /etc/brewbench/server.env
  systemctl enable --now brewbench-agent    # configuration: /etc/brewbench/agent.env
After an upgrade: systemctl daemon-reload && systemctl try-restart brewbench brewbench-agent
Scripts need k6 in PATH, or BREWBENCH_K6; request lists (--engine native) do not.
END
