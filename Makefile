.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
SUITE ?= examples/support_desk/suite.yaml
MINUTES ?= 10
UV_VERSION := 0.13.9
COMPILE := $(BIN)/uv pip compile pyproject.toml --python-version 3.11 --universal --generate-hashes \
  --no-emit-index-url --no-header --quiet

# Nothing of ours or of what we depend on calls home.
export DO_NOT_TRACK := 1
export PREFECT_SERVER_ANALYTICS_ENABLED := false

.PHONY: help
help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

.venv/.made: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make setup PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	$(BIN)/uv pip install --quiet --require-hashes -r requirements.lock --python $(BIN)/python
	$(BIN)/uv pip install --quiet --no-deps --editable . --python $(BIN)/python
	@touch $@

.PHONY: setup
setup: .venv/.made ## Make the environment in .venv from the lock file

.PHONY: eval
eval: setup ## Evaluate the example agent: no key, no Docker, no running server
	@$(BIN)/evalagent run $(SUITE); code=$$?; \
	case $$code in \
	  0) echo "Every trial passed (exit 0).";; \
	  1) echo "The agent failed in some trials (exit 1): for the example that is the right answer.";; \
	  *) exit $$code;; \
	esac

.PHONY: test
test: setup ## Run the tests
	$(BIN)/python -m pytest

.PHONY: check
check: setup ## Lint, types, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: setup ## Let ruff put the code in order
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: localmodel
localmodel: setup ## Add the tiny local model that one test asks (350 MB); CI does
	$(BIN)/uv pip install --quiet --require-hashes -r requirements-localmodel.lock --python $(BIN)/python

.PHONY: fuzz
fuzz: setup ## Fuzz the path from bytes to rows, with three engines (MINUTES of CPU time each)
	$(BIN)/uv pip install --quiet --require-hashes -r requirements-fuzz.lock --python $(BIN)/python
	$(BIN)/python -m fuzz --engine random --minutes $(MINUTES) --out fuzz-out
	$(BIN)/python -m fuzz --engine hypothesis --minutes $(MINUTES) --out fuzz-out
	$(BIN)/python -m fuzz --engine atheris --minutes $(MINUTES) --out fuzz-out

.PHONY: lock
lock: setup ## Resolve the dependencies again and write the lock files
	$(COMPILE) --extra examples --extra dev -o requirements.lock
	$(COMPILE) --extra examples --extra dev --extra localmodel -o requirements-localmodel.lock
	$(COMPILE) --extra examples --extra dev --extra fuzz -o requirements-fuzz.lock

.PHONY: server
server: setup ## Start a Prefect server on 127.0.0.1:4200, tuned for many small tasks
	infra/prefect-server.sh

.PHONY: worker
worker: setup ## Start a worker for the deployments (a server must run)
	infra/prefect-worker.sh

.PHONY: deploy
deploy: setup ## Register evalagent/full and evalagent-nightly/nightly with the server
	infra/prefect-deploy.sh

.PHONY: collector
collector: ## Build the OpenTelemetry Collector's image from its Go modules
	infra/collector/build.sh

.PHONY: clean
clean: ## Remove the environment and what tools left (runs under .evalagent stay)
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
