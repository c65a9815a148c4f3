#!/usr/bin/env bash
# Builds the image evalagent-collector from nothing but Go's module proxy. The tag is a hash of what goes into it:
# unchanged sources cost one `docker image inspect`. Prints the image's name.
set -euo pipefail
cd "$(dirname "$0")"

version=$(sed -n 's|^[[:space:]]*go.opentelemetry.io/collector/otelcol v||p' go.mod)
content=$(cat go.mod go.sum main.go config.yaml Dockerfile build.sh | sha256sum | cut -c1-12)
image="evalagent-collector:$version-$content"

if ! docker image inspect "$image" >/dev/null 2>&1; then
  go=$(./go.sh)
  context=$(mktemp -d)
  trap 'rm -rf "$context" "$context.log"' EXIT
  CGO_ENABLED=0 GOTOOLCHAIN=local "$go" build -trimpath -buildvcs=false -mod=readonly -ldflags "-s -w -X main.version=$version" \
    -o "$context/evalagent-collector" .
  cp -L config.yaml Dockerfile "$context/"
  mkdir "$context/data"
  docker build --quiet --tag "$image" "$context" >"$context.log" 2>&1 || {
    cat "$context.log" >&2
    exit 1
  }
fi
docker tag "$image" evalagent-collector:latest
for old in $(docker image ls --format '{{.Repository}}:{{.Tag}}' evalagent-collector); do
  case $old in "$image" | evalagent-collector:latest) ;; *) docker rmi "$old" >/dev/null 2>&1 || true ;; esac
done
echo "$image"
