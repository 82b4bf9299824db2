#!/bin/sh
# Checks that subjects of commits have at most 72 characters.
# usage: subjects.sh RANGE
set -eu
long=$(git log --no-merges --format='%h %s' "$1" | while read -r commit subject; do
  [ "$(printf %s "$subject" | wc -m)" -le 72 ] || echo "$commit $subject"
done)
[ -z "$long" ] || { echo "longer than 72 characters:"; echo "$long"; exit 1; }
