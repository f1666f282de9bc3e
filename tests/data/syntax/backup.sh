#!/usr/bin/env bash
# Copies what changed.
set -euo pipefail

target=${1:-/tmp/backup}
count=0

log() {
  printf '%s %s\n' "$(date +%T)" "$*" >&2
}

if [[ ! -d "$target" ]]; then
  mkdir -p "$target"
fi

for file in *.txt; do
  [ -e "$file" ] || continue
  if ! cmp -s "$file" "$target/$file"; then
    cp "$file" "$target/"
    count=$((count + 1))
  fi
done

case "$count" in
  0) log "nothing to do" ;;
  *) log "copied $count files" ;;
esac

while read -r line; do
  echo "${line//a/b}"
done < /dev/null
