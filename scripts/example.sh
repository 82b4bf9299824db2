#!/bin/sh
# Measures the bundled targets, and writes the comparison as a website of files: the example of the documentation.
# usage: example.sh PROGRAM FOLDER
set -eu
trap 'exit 1' INT TERM
echo "example: measuring two targets for about three minutes" >&2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkfifo "$folder/output"
"$1" demo --data "$folder/data" --listen 127.0.0.1:0 --target rust-hyper --target go-nethttp >"$folder/output" 2>"$folder/log" &
demo=$!
trap 'kill "$demo"; wait "$demo" || true; rm -rf "$folder"' EXIT
finished=
while read -r line; do
  case $line in comparison:*) finished=yes && break ;; esac
done <"$folder/output"
[ -n "$finished" ] || { cat "$folder/log" >&2; exit 1; }
# The address of the demo, and a token.
eval "$(sed -n 's/^commands: *//p' "$folder/log")"
"$1" export site "$2" --experiment last --title "brewbench: an example"
