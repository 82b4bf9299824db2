#!/bin/sh
# Runs all checks, fastest first, or a part of them: what one of several machines does.
# usage: test.sh TARGET-FOLDER [lint|server|agents]
set -eu
cd "$(dirname "$0")/.."
target=$1
part=${2:-all}

# Everything is built at once: with other selections of crates or targets, libraries would have other features and be
# built again.
build() {
  echo "== build"
  cargo build --quiet --locked --workspace --bin brewbench --bin rust-hyper --examples "$@"
  scripts/install-targets.sh "$target/debug"
}

# Tests wait for browsers, load generators, containers and virtual machines most of the time, or for their turn to measure.
server() {
  cargo test --locked --workspace --test all -- --test-threads "$(($(nproc) * 2))"
}

agents() {
  (cd agents/targets/go-nethttp && GOTOOLCHAIN=local go test ./...) &&
    cargo test --locked --workspace --lib --bins --test agents --test formats --test generator --test memory
}

case $part in
  lint) scripts/lint.sh ;;
  server) build --test all && server ;;
  agents) build --tests && agents ;;
  all)
    scripts/lint.sh
    build --tests
    echo "== tests"
    # One after the other: both measure.
    agents
    server
    ;;
  *) echo "unknown part: $part" >&2; exit 2 ;;
esac
