#!/bin/sh
# Installs the bundled targets and manifests into targets/ beside the program.
# usage: install-targets.sh PROGRAM-FOLDER
set -eu
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../agents/targets"
mkdir -p "$folder/targets/bin"
cp ./*.toml "$folder/targets/"
cp -f "$folder/rust-hyper" "$folder/targets/bin/rust-hyper"
cd go-nethttp
GOTOOLCHAIN=local go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$folder/targets/bin/go-nethttp" .
