PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help

help:  ## show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

setup: $(VENV)/.ready  ## make .venv with memlane and its tools

demo: setup  ## see memlane do its main job in a throwaway folder
	@PATH="$(CURDIR)/$(BIN):$$PATH" ./demo.sh

test: setup lint  ## lint, types and all tests
	$(BIN)/python -m pytest -n 2

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: setup  ## print the speed table (docs/benchmarks.md)
	$(BIN)/python bench/files.py

clean:  ## remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .hypothesis build dist

.PHONY: help setup demo test lint bench clean
