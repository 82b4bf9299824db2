#!/bin/sh
# Fuzzes every decoder of untrusted bytes, starting from real data. Keeps earlier findings in fuzz/corpus.
# usage: fuzz.sh SECONDS-PER-TARGET
set -eu
cd "$(dirname "$0")/.."
rustup toolchain list | grep -q '^nightly' || { echo "fuzz: rustup toolchain install nightly" >&2; rustup toolchain install nightly --profile minimal; }
cargo fuzz --version >/dev/null 2>&1 || { echo "fuzz: cargo install cargo-fuzz" >&2; cargo install --quiet --locked --debug cargo-fuzz@0.13.2; }
mkdir -p fuzz/corpus/summary fuzz/corpus/reports fuzz/corpus/push fuzz/corpus/packed fuzz/corpus/messages fuzz/corpus/profile
for file in crates/wire/tests/fixtures/*; do
  cp "$file" "fuzz/corpus/reports/seed-$(basename "$file")"
done
for file in samples/published/*.json samples/published/*.txt agents/tests/fixtures/series/*/summary.json; do
  cp "$file" "fuzz/corpus/summary/seed-$(echo "$file" | tr / -)"
done
# A recording is a sequence of pushes, each after 8 bytes of time and 4 bytes of length.
for file in agents/tests/fixtures/series/*/pushes.bin; do
  length=$(od -An -tu4 -j8 -N4 "$file")
  tail -c +13 "$file" | head -c "$((length))" > "fuzz/corpus/push/seed-$(echo "$file" | tr / -)"
done
for target in $(cd fuzz && cargo fuzz list); do
  echo "== $target, $1 s"
  cargo +nightly fuzz run --fuzz-dir fuzz "$target" -- -max_total_time="$1" -max_len=65536 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
