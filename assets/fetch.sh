#!/bin/sh
# Fetches the browser assets that the build embeds, Plotly by npm and Datastar out of a locked crate, and axe-core, with
# which the tests look at pages. All are pinned; Datastar's sum is checked here because a crate's lock covers the
# package, not what we take it for.
set -eu
cd "$(dirname "$0")/.."

[ -f node_modules/.package-lock.json ] && [ node_modules/.package-lock.json -nt package-lock.json ] || {
    echo "assets: npm ci" >&2
    npm ci --include=dev --ignore-scripts --no-audit --no-fund --silent
    touch node_modules/.package-lock.json
}

datastar=.tools/assets/datastar.js
sum=727844adfc825ee651fb93c544a2a739986f9a21820a94524b35f0cac470cf91
[ -f "$datastar" ] && echo "$sum  $datastar" | sha256sum --check --quiet && exit 0
echo "assets: cargo fetch (datastar.js)" >&2
cargo fetch --locked --quiet --manifest-path assets/Cargo.toml
found=$(ls -d "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/runnerd-web-0.0.27/assets/datastar.js | head -n 1)
echo "$sum  $found" | sha256sum --check --quiet
mkdir -p .tools/assets
cp "$found" "$datastar"
