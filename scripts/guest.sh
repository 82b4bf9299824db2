#!/bin/sh
# Installs Debian's QEMU unless it is installed, and fetches Debian's cloud kernel for the guests of the tests.
# usage: guest.sh FOLDER
set -eu
folder=$1
export DEBIAN_FRONTEND=noninteractive
if [ "$(uname -m)" != x86_64 ]; then
  echo "guest: the tests of virtual machines need x86_64" >&2
  exit 0
fi
if ! command -v qemu-system-x86_64 >/dev/null; then
  echo "qemu: apt-get install qemu-system-x86" >&2
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends qemu-system-x86 >/dev/null
fi
[ -e "$folder/vmlinuz" ] && exit 0
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
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci failover net_failover virtio_net; do
  cp "$(find lib/modules -name "$module.ko")" "$folder/$number-$module.ko"
  number=$((number + 1))
done
cp boot/vmlinuz-* "$folder/vmlinuz"
