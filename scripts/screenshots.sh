#!/bin/sh
# Pictures of every page: an empty site, a team's work, and names and figures that fit nowhere; each light and dark, 1440
# and 390 px wide. They are taken on the walk that the browser tests make anyway.
# usage: screenshots.sh FOLDER
set -eu
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
BREWBENCH_SCREENSHOTS=$folder cargo test --quiet --locked --package brewbench --test all -- browser::accessible browser::paper >&2
echo "$folder: $(find "$folder" -name '*.png' | wc -l) pictures"
