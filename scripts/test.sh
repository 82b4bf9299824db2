#!/bin/sh
# Runs all checks, fastest first.
# usage: test.sh TARGET-FOLDER
set -eu
cd "$(dirname "$0")/.."
target=$1
scripts/lint.sh
echo "== build"
cargo build --quiet --locked --workspace
scripts/install-targets.sh "$target/debug"
echo "== tests"
(cd agents/targets/go-nethttp && GOTOOLCHAIN=local go test ./...)
cargo test --locked --workspace
