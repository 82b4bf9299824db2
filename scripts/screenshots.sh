#!/bin/sh
# Takes screenshots of every page: empty, with typical data, and with oversized names and figures; light and dark, 1440 and
# 390 px wide. Runs the browser tests that visit these pages.
# usage: screenshots.sh FOLDER
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
BREWBENCH_SCREENSHOTS=$folder cargo test --quiet --locked --workspace --test all -- browser::accessible browser::print >&2
echo "$folder: $(find "$folder" -name '*.png' | wc -l) screenshots"
