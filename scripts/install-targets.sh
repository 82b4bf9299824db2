#!/bin/sh
# Puts the bundled targets and their manifests where the program looks for them: targets/ beside it.
# usage: install-targets.sh FOLDER-OF-THE-PROGRAM
set -eu
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../agents/targets"
mkdir -p "$folder/targets/bin"
cp ./*.toml "$folder/targets/"
cp -f "$folder/rust-hyper" "$folder/targets/bin/rust-hyper"
cd go-nethttp
GOTOOLCHAIN=local go build -trimpath -buildvcs=false -ldflags '-s -w' -o "$folder/targets/bin/go-nethttp" .
