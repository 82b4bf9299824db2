#!/bin/sh
# Builds a release for Linux on x86_64 and aarch64: archives, packages, container images, a list of the libraries, and
# checksums. `make release` installs what it needs. The same commit gives the same archives and packages.
# usage: release.sh TARGET-FOLDER RELEASE-FOLDER [ARCHITECTURE…]
set -eu
umask 022
cd "$(dirname "$0")/.."
mkdir -p "$1" "$2"
target=$(cd "$1" && pwd)
to=$(cd "$2" && pwd)
shift 2
[ $# -gt 0 ] || set -- x86_64 aarch64
tools=$PWD/.tools
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
commit=$(git rev-parse --short=8 HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The program names no folder of this machine.
build() {
  RUSTFLAGS="-C force-frame-pointers=yes --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo"
  RUSTFLAGS="$RUSTFLAGS --remap-path-prefix=$PWD=. --remap-path-prefix=$target=target" \
    BREWBENCH_VERSION="$version ($commit)" CARGO_TARGET_DIR=$target CARGO_ZIGBUILD_ZIG_PATH=$tools/zig/ziglang/zig \
    "$tools/zig/bin/cargo-zigbuild" zigbuild --locked --profile dist --target "$1-unknown-linux-musl" \
    --package brewbench-cli --package rust-hyper
  mkdir -p "$2/targets/bin"
  built=$target/$1-unknown-linux-musl/dist
  objcopy --strip-all "$built/brewbench" "$2/brewbench"
  # Profiles need its names.
  objcopy --strip-debug "$built/rust-hyper" "$2/targets/bin/rust-hyper"
  (cd agents/targets/go-nethttp && CGO_ENABLED=0 GOARCH=$(go_name "$1") GOTOOLCHAIN=local \
    go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$2/targets/bin/go-nethttp" .)
  cp agents/targets/*.toml "$2/targets/"
}

# That of Rust, which knows all architectures.
objcopy() {
  rust=$(rustc --print sysroot)
  LD_LIBRARY_PATH=$rust/lib "$rust/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/rust-objcopy" "$@"
}

# The name of an architecture in Go and Debian.
go_name() {
  case $1 in x86_64) echo amd64 ;; aarch64) echo arm64 ;; *) echo "unknown architecture: $1" >&2; exit 2 ;; esac
}

# Man pages, completions and licences are the same for all architectures; the program of this one writes them.
documents() {
  program=$folder/$(uname -m)/brewbench
  [ -x "$program" ] || { mkdir -p "$folder/$(uname -m)" && build "$(uname -m)" "$folder/$(uname -m)"; }
  mkdir -p "$folder/common/man" "$folder/common/completions"
  "$program" man "$folder/common/man"
  "$program" completions bash >"$folder/common/completions/brewbench"
  "$program" completions fish >"$folder/common/completions/brewbench.fish"
  "$program" completions zsh >"$folder/common/completions/_brewbench"
  scripts/licenses.py brewbench-cli >"$folder/common/LICENSES.txt"
  cp -R README.md LICENSE CHANGELOG.md deploy/install.sh deploy/systemd "$folder/common/"
}

archive() {
  name=brewbench-$version-$1-linux
  cp -R "$folder/common" "$folder/$name"
  cp -R "$folder/$1/." "$folder/$name/"
  tar -C "$folder" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$name" | gzip -n -9 >"$to/$name.tar.gz"
}

packages() {
  export TREE="$folder/tree-$1" VERSION="$version" ARCH
  ARCH=$(go_name "$1")
  PREFIX=/usr DESTDIR=$TREE "$folder/brewbench-$version-$1-linux/install.sh"
  find "$TREE" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  for format in deb rpm; do
    nfpm package --config deploy/package/nfpm.yaml --packager "$format" --target "$to" >/dev/null
  done
}

image() {
  root=$folder/image-$1/root
  mkdir -p "$root/etc/ssl/certs" "$root/tmp" "$folder/image-$1/data/brewbench" "$folder/image-$1/data/brewbench-agent"
  chmod 1777 "$root/tmp"
  chmod 700 "$folder/image-$1/data"/*
  cp -R "$folder/tree-$1/usr" "$root/"
  rm -rf "$root/usr/share"
  cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
  echo "brewbench:x:65532:65532::/var/lib/brewbench:/sbin/nologin" >"$root/etc/passwd"
  # The linker of Go drops names and debug information; `go install` for another architecture allows no folder of ours.
  GOPATH=$tools/k6 GOMODCACHE=$(go env GOMODCACHE) GOBIN='' CGO_ENABLED=0 GOARCH=$(go_name "$1") nice go install -trimpath -ldflags '-s -w' "$K6"
  cp "$(find "$tools/k6/bin" -name k6 -path "*$([ "$1" = "$(uname -m)" ] && echo bin/k6 || echo "$(go_name "$1")/k6")")" "$root/usr/bin/"
  buildah build --quiet --isolation chroot --format docker --arch "$(go_name "$1")" --timestamp "$SOURCE_DATE_EPOCH" \
    --file deploy/Containerfile --tag "localhost/brewbench:$version" "$folder/image-$1" >/dev/null
  rm -f "$to/brewbench-$version-$1-image.tar"
  buildah push --quiet "localhost/brewbench:$version" "docker-archive:$to/brewbench-$version-$1-image.tar:localhost/brewbench:$version"
  buildah rmi "localhost/brewbench:$version" >/dev/null
}

libraries() {
  cargo cyclonedx --quiet --format json --spec-version 1.5 --manifest-path crates/cli/Cargo.toml --target x86_64-unknown-linux-musl --override-filename sbom
  find . -name sbom.json -not -path ./crates/cli/sbom.json -not -path './node_modules/*' -delete
  sed "s|$PWD|.|g" crates/cli/sbom.json >"$to/brewbench-$version.cdx.json"
  rm crates/cli/sbom.json
}

for architecture in "$@"; do
  mkdir -p "$folder/$architecture"
  build "$architecture" "$folder/$architecture"
done
documents
for architecture in "$@"; do
  archive "$architecture"
  packages "$architecture"
  image "$architecture"
done
libraries
(cd "$to" && sha256sum brewbench?"$version"* >SHA256SUMS)
ls -l "$to"
