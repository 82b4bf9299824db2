#!/bin/sh
# Installs QEMU for aarch64 unless it is installed, and fetches Debian's cloud kernel and BusyBox for aarch64: a machine in which
# `make test-release` tries a release. The architectures that apt knows here stay as they are.
# usage: arm64.sh FOLDER
set -eu
folder=$1
if ! { command -v qemu-system-aarch64 && command -v cpio; } >/dev/null; then
  echo "qemu-system-aarch64: apt-get install qemu-system-arm cpio" >&2
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends qemu-system-arm cpio >/dev/null
fi
[ -e "$folder/busybox" ] && exit 0
echo "arm64: apt-get download linux-image-cloud-arm64 and busybox-static into .tools/arm64" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir -p lists/partial cache/archives/partial
touch status
options="-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root -o Dir::State::lists=$work/lists
  -o Dir::State::status=$work/status -o Dir::Cache=$work/cache"
# shellcheck disable=SC2086
apt-get $options update -qq
# shellcheck disable=SC2086
kernel=$(apt-cache $options depends linux-image-cloud-arm64 | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1)
# shellcheck disable=SC2086
apt-get $options download -qq "$kernel" busybox-static
for package in ./*.deb; do dpkg-deb -x "$package" .; done
mkdir -p "$folder"
cp boot/vmlinuz-* "$folder/vmlinuz"
cp bin/busybox "$folder/busybox"
