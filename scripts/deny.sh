#!/bin/sh
# Licences, sources and known vulnerabilities of everything that is linked.
set -eu
cd "$(dirname "$0")/.."
cargo deny --version >/dev/null 2>&1 || { echo "cargo-deny: cargo install cargo-deny" >&2; cargo install --quiet --locked --debug cargo-deny@0.20.2; }
cargo deny --log-level error check bans licenses sources
# The list of vulnerabilities is a repository on GitHub. Where that can't be reached, an earlier copy does.
if cargo deny --log-level error fetch db >/dev/null 2>&1; then
  cargo deny --log-level error check advisories
elif ls -d "${CARGO_HOME:-$HOME/.cargo}"/advisory-dbs/advisory-db-*/ >/dev/null 2>&1; then
  cargo deny --log-level error --offline check advisories
else
  echo "advisories: not checked, the list can't be fetched from here" >&2
fi
