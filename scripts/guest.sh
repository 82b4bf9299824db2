#!/bin/sh
# Installs Debian's QEMU and tools for disk images unless they are installed, and fetches Debian's cloud kernel for the guests of the tests.
# usage: guest.sh FOLDER
set -eu
folder=$1
export DEBIAN_FRONTEND=noninteractive
if [ "$(uname -m)" != x86_64 ]; then
  echo "guest: the tests of virtual machines need x86_64" >&2
  exit 0
fi
if ! { command -v qemu-system-x86_64 && command -v qemu-img && command -v syslinux && command -v mcopy &&
  test -x /sbin/mkfs.vfat; } >/dev/null; then
  packages="qemu-system-x86 qemu-utils syslinux mtools dosfstools"
  echo "qemu: apt-get install $packages" >&2
  apt-get update -qq
  # shellcheck disable=SC2086
  apt-get install -y -qq --no-install-recommends $packages >/dev/null
fi
[ -e "$folder/18-virtio_balloon.ko" ] && exit 0
echo "guest kernel: apt-get download linux-image-cloud-amd64 into .tools/guest" >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
package() { apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-.*\)/\1/p' | head -n 1; }
[ -n "$(package)" ] || apt-get update -qq
# The package that apt knows may be gone from the server.
apt-get download -qq "$(package)" 2>/dev/null || { apt-get update -qq; apt-get download -qq "$(package)"; }
dpkg-deb -x ./*.deb .
mkdir -p "$folder"
number=10
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net \
  virtio_balloon virtio_blk nls_cp437 nls_ascii fat vfat; do
  cp "$(find lib/modules -name "$module.ko")" "$folder/$number-$module.ko"
  number=$((number + 1))
done
cp boot/vmlinuz-* "$folder/vmlinuz"
