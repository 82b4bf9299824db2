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
# As `make demo` builds it.
cargo clippy --quiet --locked --package brewbench-agent --no-default-features -- -D warnings
(cd agents/targets/go-nethttp && GOTOOLCHAIN=local go vet ./...)
echo "== dependencies"
scripts/deny.sh
echo "== documentation"
# Of what others read; what only measures and tests is linted above.
RUSTDOCFLAGS="-D warnings" cargo doc --quiet --locked --workspace --exclude brewbench-bench --exclude brewbench-kubernetes-testing \
  --no-deps --document-private-items
