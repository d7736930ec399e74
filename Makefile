PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ADAPTERS := .adapters
SYSTEM ?= yes  # SYSTEM=no: leave the system's packages (apt) alone
WHEELS ?= --only-binary :all:  # a source package would run its own code, and fetch what builds it without hashes
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
.DEFAULT_GOAL := help

help:  ## show these targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.ready: pyproject.toml requirements-dev.txt
	@echo "pip: installing $$(grep -c '==' requirements-dev.txt) packages into $(VENV), each checked by its hash (requirements-dev.txt)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --require-hashes $(WHEELS) --requirement requirements-dev.txt
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

setup: $(VENV)/.ready  ## make .venv with memlane and its tools, all of them locked

lock:  ## write requirements-dev.txt anew; UPGRADE=--upgrade takes the newest versions (needs uv)
	$(PYTHON) scripts/lock.py $(UPGRADE)

sbom: setup  ## write dist/memlane.cdx.json: what a user of memlane installs (CycloneDX)
	$(BIN)/python scripts/sbom.py dist/memlane.cdx.json

demo: setup  ## see memlane do its main job in a throwaway folder
	@PATH="$(CURDIR)/$(BIN):$$PATH" ./demo.sh

test: setup node postgres $(ADAPTERS)/.ready  ## lint, types and all tests; SYSTEM=no never touches apt
	@$(MAKE) --no-print-directory -j2 lint test-adapters
	$(BIN)/python -m pytest -n 3 --ignore tests/adapters

# The frameworks that the adapters are for live in an environment of their own: they bring pytest plugins and a hundred
# packages that nothing else here needs; of the plugins only three are loaded, because one of the others takes 3 s to
# start in each process. A framework that is not in it (pip install it there) has its tests skipped.
$(ADAPTERS)/.ready: pyproject.toml requirements-adapters.txt
	@echo "pip: installing $$(grep -c '==' requirements-adapters.txt) packages into $(ADAPTERS), each checked by its hash (requirements-adapters.txt)"
	@$(PYTHON) -m venv $(ADAPTERS)
	@$(ADAPTERS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes $(WHEELS) --requirement requirements-adapters.txt
	@echo $(CURDIR)/src > $$($(ADAPTERS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/memlane.pth
	@touch $@

test-adapters: $(ADAPTERS)/.ready  ## the adapters with the frameworks that they are for
	PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 $(ADAPTERS)/bin/python -m pytest -p xdist -p pytest_asyncio.plugin -p hypothesis.extra.pytestplugin \
		-o asyncio_mode=auto -o asyncio_default_fixture_loop_scope=function -W default -n 2 tests/adapters

# Clients of the MCP server that others wrote come from npm. Without it their tests are skipped, and say so.
# Versions are exact, and no package's scripts are run. A lock file is not kept: npm writes the address of the registry
# that it used into each entry, so the file of one network is wrong in another. What these depend on is not locked.
NODE := .node/.ready
$(NODE): tests/clients/package.json
	@if [ "$(strip $(SYSTEM))" != no ] && ! command -v npm >/dev/null && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "apt: installing nodejs and npm on this system (make test SYSTEM=no leaves it alone)"; \
		apt-get update -qq && apt-get install -qq --no-install-recommends nodejs npm >/dev/null; fi || true
	@if command -v npm >/dev/null; then \
		echo "npm: installing $$(grep -oE '"(@|axe).*": "[0-9].*"' $< | tr -d '", ' | tr ':\n' '@ ')into .node, without running their scripts"; \
		mkdir -p .node && cp $< .node/ && cd .node && \
		npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error && touch .ready; \
		else echo "npm is not here: the tests with other people's MCP clients are skipped"; fi || \
		echo "npm could not install other people's MCP clients: their tests are skipped"

node: $(NODE)

# The database that sharing through PostgreSQL is tested with. Without one those tests are skipped, and say so.
postgres:
	@if [ "$(strip $(SYSTEM))" != no ] && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null && \
		[ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "apt: installing postgresql on this system (make test SYSTEM=no leaves it alone)"; \
		apt-get update -qq && apt-get install -qq --no-install-recommends postgresql >/dev/null; fi || true

# The clients that agents run in. Their installation scripts only put the program for this machine in its place.
AGENTS := .clients/.ready
$(AGENTS): tests/clients/agents/package.json
	@echo "npm: installing the clients of $< into .clients, and running the scripts of two of them"
	mkdir -p .clients && cp $< .clients/ && cd .clients && \
		npm install --no-package-lock --no-audit --no-fund --ignore-scripts --loglevel=error
	for script in @anthropic-ai/claude-code/install.cjs opencode-ai/postinstall.mjs; do \
		if [ -f .clients/node_modules/$$script ]; then \
			(cd .clients/node_modules/$$(dirname $$script) && node $$(basename $$script)) || exit 1; fi; done
	touch $@

test-clients: setup $(AGENTS)  ## real clients (over 1 GB from npm) against a scripted model
	$(BIN)/python tests/clients

# The browser that the page of `memlane ui` is tested in. Without one those tests are skipped, and say so.
setup-browser:  ## install Chromium (apt), which the tests of `memlane ui` look at the page with
	@if command -v chromium chromium-browser google-chrome >/dev/null; then echo "a browser is there"; \
		elif [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "apt: installing chromium on this system"; \
		apt-get update -qq && apt-get install -qq --no-install-recommends chromium >/dev/null; \
		else echo "install Chromium with your system's packages, then run make test"; exit 1; fi

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# What memlane is compared with has an environment of its own, if it is there at all (docs/benchmarks.md): nothing here
# installs it. DATA=FOLDER names the data that the benchmarks tell of; ONLY="Hooks" takes some of the sections.
OTHERS ?= .others/bin/python
bench: setup  ## print docs/benchmarks.md anew: memlane beside what people would take instead, and all else (half an hour)
	@$(BIN)/python bench/report.py $$(test -x $(OTHERS) && echo --others $(OTHERS)) $(if $(DATA),--data $(DATA)) $(if $(ONLY),--only "$(ONLY)") $(if $(LONG),--long)

torture: setup  ## five minutes of killed processes, full disks and merges on one bank (docs/reliability.md)
	$(BIN)/python tests/torture.py --seconds 300

torture-power: setup  ## two minutes of lost power on a file system of its own (needs root and loop devices)
	$(BIN)/python tests/torture_power.py --rounds 4

torture-errors: setup  ## a minute and a half of EIO and ENOSPC in every call that writes (needs strace)
	$(BIN)/python tests/torture_errors.py --seconds 90

torture-server: setup  ## stopped lock holders and a damaged index under a running MCP server
	$(BIN)/python tests/torture_server.py

torture-links: setup  ## two minutes of links at every name of a bank, under every command
	$(BIN)/python tests/torture_links.py --seconds 120

torture-sync: setup postgres  ## five minutes of members who share three remotes, while everything fails (docs/reliability.md)
	$(BIN)/python tests/torture_sync.py --seconds 300

simulate-sync: setup  ## 500 simulated teams; one that fails can be run again, and is cut short (docs/reliability.md)
	$(BIN)/python tests/simulate_sync.py --seeds $(or $(SEEDS),1-500) --jobs 2 --shrink
	$(BIN)/python tests/simulate_sync.py --seeds $(or $(SEEDS),1-500) --jobs 2 --shrink --scopes

fuzz: setup  ## look for inputs that break a parser, with new examples each time, then the slowest ones
	MEMLANE_FUZZ=1 $(BIN)/python -m pytest tests/test_fuzz.py
	@if $(BIN)/python -c 'import atheris' 2>/dev/null; then $(BIN)/python tests/guided.py; \
		else echo "atheris is not installed: no coverage-guided fuzzing ($(BIN)/pip install atheris)"; fi
	$(BIN)/python bench/hostile.py

clean:  ## remove what the targets made
	rm -rf $(VENV) $(ADAPTERS) .node .clients .mypy_cache .ruff_cache .hypothesis build dist

.PHONY: help setup lock sbom demo test test-adapters node postgres test-clients setup-browser lint bench torture torture-power torture-errors \
	torture-server torture-links torture-sync simulate-sync fuzz clean
