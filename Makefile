PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

help:  ## show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: $(VENV)/.ready  ## make .venv with memlane and its tools

demo: setup  ## see memlane do its main job in a throwaway folder
	@PATH="$(CURDIR)/$(BIN):$$PATH" ./demo.sh

test: setup node lint  ## lint, types and all tests
	$(BIN)/python -m pytest -n 2

# Clients of the MCP server that others wrote come from npm. Without it their tests are skipped, and say so.
NODE := .node/.ready
$(NODE): tests/clients/package.json
	@if ! command -v npm >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		apt-get update -qq && apt-get install -qq --no-install-recommends nodejs npm >/dev/null; fi || true
	@if command -v npm >/dev/null; then mkdir -p .node && cp $< .node/ && cd .node && \
		npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error && touch .ready; \
		else echo "npm is not here: the tests with other people's MCP clients are skipped"; fi || \
		echo "npm could not install other people's MCP clients: their tests are skipped"

node: $(NODE)

# The clients that agents run in. Their installation scripts only put the program for this machine in its place.
AGENTS := .clients/.ready
$(AGENTS): tests/clients/agents/package.json
	mkdir -p .clients && cp $< .clients/ && cd .clients && \
		npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error
	for script in @anthropic-ai/claude-code/install.cjs opencode-ai/postinstall.mjs; do \
		if [ -f .clients/node_modules/$$script ]; then \
			(cd .clients/node_modules/$$(dirname $$script) && node $$(basename $$script)) || exit 1; fi; done
	touch $@

test-clients: setup $(AGENTS)  ## real clients (over 1 GB from npm) against a scripted model
	$(BIN)/python tests/clients

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: setup  ## print the speed table (docs/benchmarks.md)
	$(BIN)/python bench/files.py

torture: setup  ## five minutes of killed processes, full disks and merges on one bank (docs/reliability.md)
	$(BIN)/python tests/torture.py --seconds 300

fuzz: setup  ## look for inputs that break a parser, with new examples each time, then the slowest ones
	MEMLANE_FUZZ=1 $(BIN)/python -m pytest tests/test_fuzz.py
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then $(BIN)/python tests/guided.py; \
		else echo "atheris is not installed: no coverage-guided fuzzing ($(BIN)/pip install atheris)"; fi
	$(BIN)/python tests/hostile.py

clean:  ## remove what the targets made
	rm -rf $(VENV) .node .clients .mypy_cache .ruff_cache .hypothesis build dist

.PHONY: help setup demo test node test-clients lint bench torture fuzz clean
