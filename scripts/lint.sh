#!/bin/sh
# Checks format, lints, dependencies and documentation. Warnings are errors.
set -eu
cd "$(dirname "$0")/.."
echo "== format"
cargo fmt --all --check
unformatted=$(gofmt -l agents/targets/go-nethttp)
[ -z "$unformatted" ] || { echo "gofmt: $unformatted"; exit 1; }
echo "== lints"
cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
(cd agents/targets/go-nethttp && GOTOOLCHAIN=local go vet ./...)
echo "== dependencies"
scripts/deny.sh
echo "== documentation"
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --no-deps --document-private-items
