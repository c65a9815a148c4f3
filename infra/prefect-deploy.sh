#!/usr/bin/env bash
# Registers the deployments. Entrypoints resolve against the current folder, so this runs from the root of the checkout.
set -euo pipefail
cd "$(dirname "$0")/.."
export DO_NOT_TRACK=1 PREFECT_API_URL="${PREFECT_API_URL:-http://127.0.0.1:${PREFECT_PORT:-4200}/api}"
.venv/bin/prefect --no-prompt work-pool create evalagent-local --type process --overwrite >/dev/null
.venv/bin/prefect --no-prompt deploy --all --prefect-file deployments/prefect.yaml
