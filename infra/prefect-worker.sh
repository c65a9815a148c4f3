#!/usr/bin/env bash
# A worker that runs the deployments as processes of this machine.
set -euo pipefail
cd "$(dirname "$0")/.."
export DO_NOT_TRACK=1 PREFECT_API_URL="${PREFECT_API_URL:-http://127.0.0.1:${PREFECT_PORT:-4200}/api}"
.venv/bin/prefect --no-prompt work-pool create evalagent-local --type process --overwrite >/dev/null
exec .venv/bin/prefect worker start --pool evalagent-local "$@"
