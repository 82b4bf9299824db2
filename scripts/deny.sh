#!/bin/sh
# Checks licences, sources and known vulnerabilities of all dependencies.
set -eu
cd "$(dirname "$0")/.."
cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny: cargo install cargo-deny" >&2; cargo install --quiet --locked --debug cargo-deny@0.20.2; }
cargo deny --log-level error check bans licenses sources
# The advisory database is a repository on GitHub. If GitHub cannot be reached, an earlier copy is used.
if cargo deny --log-level error fetch db >/dev/null 2>&1; then
  cargo deny --log-level error check advisories
elif ls -d "${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/advisory-db-*/ >/dev/null 2>&1; then
  cargo deny --log-level error --offline check advisories
else
  echo "advisories: not checked, the database cannot be fetched" >&2
fi
