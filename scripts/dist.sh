#!/bin/sh
# Packs a build into an archive for machines without Rust, Go or Node.
# usage: dist.sh PROGRAM-FOLDER ARCHIVE-FOLDER
set -eu
built=$(cd "$1" && pwd)
mkdir -p "$2"
to=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
version=$("$built/brewbench" --version | cut -d' ' -f2)
name=brewbench-$version-$(uname -m)-linux
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/$name/targets/bin" "$folder/$name/systemd"
cp "$built/brewbench" README.md LICENSE deploy/install.sh "$folder/$name/"
cp "$built"/targets/*.toml "$folder/$name/targets/"
cp "$built"/targets/bin/* "$folder/$name/targets/bin/"
cp deploy/brewbench.service deploy/brewbench.sysusers agents/deploy/brewbench-agent.service "$folder/$name/systemd/"
# Reproducible: the same files give the same bytes.
when=$(git log -1 --format=%ct 2>/dev/null || echo 0)
tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" -cf - "$name" | gzip -n -"${LEVEL:-9}" >"$to/.$name.part"
mv "$to/.$name.part" "$to/$name.tar.gz"
(cd "$to" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
echo "$to/$name.tar.gz"
