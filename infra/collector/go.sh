#!/usr/bin/env bash
# Prints the path of a Go that can build the collector. Debian's is too old to do it, but it can fetch a new one, as a
# module with a checksum, from the same proxy that the collector's own modules come from.
set -euo pipefail
cd "$(dirname "$0")"

wanted=$(sed -n 's/^go //p' go.mod)
for found in "$(command -v go || true)" /usr/local/go/bin/go /usr/lib/go*/bin/go; do
  [ -x "$found" ] || continue
  has=$(cd / && GOTOOLCHAIN=local "$found" env GOVERSION | sed 's/^go//')
  if [ "$(printf '%s\n%s\n' "$wanted" "$has" | sort -V | head -1)" = "$wanted" ]; then
    echo "$found"
    exit
  fi
  old=$found
done

[ -n "${old:-}" ] || {
  echo "Go is not installed: apt-get install golang-go, or https://go.dev/dl" >&2
  exit 1
}
case $(uname -m) in
  x86_64) machine=amd64 ;;
  aarch64) machine=arm64 ;;
  *) echo "no Go toolchain for $(uname -m) is known here: install Go $wanted" >&2 && exit 1 ;;
esac
folder=$(cd / && GOFLAGS=-mod=mod "$old" mod download -json "golang.org/toolchain@v0.0.1-go$wanted.linux-$machine" |
  sed -n 's/^.*"Dir": "\(.*\)",$/\1/p')
chmod -R u+w "$folder"
chmod +x "$folder"/bin/* "$folder"/pkg/tool/*/* 2>/dev/null || true
echo "$folder/bin/go"
