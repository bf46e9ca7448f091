# Everything that these targets install or write stays in .venv/ and var/ of the checkout, but the databases of the
# benchmark, which are in .bench/.

PYTHON  ?= python3
PORT    ?= 8000
WORKERS ?= auto
export PORT
unexport PYTHONDONTWRITEBYTECODE  # every process would compile every module anew

VENV    := .venv
BIN     := $(VENV)/bin
REQUIREMENTS ?= requirements.txt
RUNTIME := $(VENV)/.installed-$(REQUIREMENTS)
DEV     := $(VENV)/.dev-installed
PRODUCTION := var/runtime/.installed
MALAY   := locale/ms/LC_MESSAGES/django
PIP     := $(BIN)/python -m pip --disable-pip-version-check -qq
OFFLINE := $(if $(wildcard wheels),--no-index --find-links wheels)# of a release: no network
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder
LOCK    := $(BIN)/uv --quiet pip compile pyproject.toml --universal --python-version 3.11 \
           --fork-strategy fewest --generate-hashes --no-emit-index-url --no-emit-find-links \
           --custom-compile-command 'make lock'
# A production that sends traces; the tests do, too.
TRACES  := --extra traces --constraint requirements.txt

.DEFAULT_GOAL := help
.PHONY: help run install quick test long lint hooks format types check bench interleavings fuzz chaos container mutants messages screenshots \
        sbom release audit lock check-lock clean

help:  ## say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(RUNTIME) $(MALAY).mo  ## start the service with sample data on http://127.0.0.1:$PORT (8000)
	@$(BIN)/python manage.py demo --port $(PORT)

# Whatever the umask of the operator is, every user of the machine must be able to read what the service then runs.
install:  ## a production in this folder: only requirements.txt in .venv/, compiled (docs/operations.md)
	@test ! -e $(DEV) || { \
	  echo "$(VENV)/ holds the development tools: install a production in another folder." >&2; exit 1; }
	@umask 022 && $(MAKE) --no-print-directory $(RUNTIME) $(MALAY).mo
	@umask 022 && $(BIN)/python -m compileall -q identity tokens taxpayers manage.py
	@echo "== installed in $(CURDIR)"

quick: $(DEV) $(MALAY).mo  ## tests in process, on SQLite, below 0.1 s of CPU time in the last `make test`; ARGS="-k word" chooses
	@$(PYTEST) -m "not processes and not slow" --cheaper-than=0.1 $(ARGS)

test: $(DEV) $(MALAY).mo  ## the gate: all in process, each promise at the edge once; SQLite, then each statement on PostgreSQL
	@echo "== tests on SQLite, and the edge: servers, proxy, browser, manage.py"
	@$(PYTEST) -m "not long" --database=sqlite --statements=var/statements.txt $(ARGS)
	@echo "== each of their statements on PostgreSQL"
	@$(PYTEST) -m "not long" --database=postgresql --statements=var/statements.txt $(ARGS)

long: $(DEV) $(MALAY).mo  ## what `make test` leaves out (servers, browser, proofs): hours; nightly and before a release
	@$(PYTEST) -m long $(ARGS)
	@$(MAKE) --no-print-directory interleavings fuzz
	@$(BIN)/python -m proofs.chaos
	@$(MAKE) --no-print-directory mutants ARGS="--sample 400"

lint: $(DEV)  ## ruff: rules and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

hooks: $(DEV)  ## lint, format and locks before each commit of this clone
	@git config core.hooksPath .githooks

format: $(DEV)  ## put the code in ruff's format
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

types: $(DEV)  ## mypy with the Django plug-in
	@$(BIN)/mypy .

check: lint types test  ## lint, types and tests

bench: $(DEV)  ## what a login costs beside its peers, into docs/performance.md (about 20 min)
	@$(BIN)/python -m bench $(or $(ARGS),compare --write)

interleavings: $(DEV)  ## logins and changes in random order against a serial oracle; STEPS=1000000 SEED=n
	@$(BIN)/python -m proofs.interleavings --steps $(or $(STEPS),1000000) $(if $(SEED),--seed $(SEED))

fuzz: $(DEV)  ## a million hostile inputs against the running service; INPUTS=5000 SEED=n ARGS=--replay=file
	@$(BIN)/python -m proofs.fuzz --inputs $(or $(INPUTS),1000000) $(if $(SEED),--seed $(SEED)) $(ARGS)

chaos: $(DEV)  ## faults under load with real processes; figures in var/drill.txt (within 15 min)
	@$(BIN)/python -m proofs.chaos $(ARGS)

container: $(DEV)  ## the container image, built and run read-only (as root; Debian: buildah crun debootstrap)
	@$(BIN)/python -m proofs.containers $(ARGS)

mutants: $(DEV) $(MALAY).mo  ## do the tests notice faults put in on purpose; ARGS="--only taxpayers/rules.py --sample 100" chooses
	@$(BIN)/python -m proofs.mutants $(ARGS)

messages: $(DEV)  ## collect the staff's texts into locale/ and compile the Malay ones
	@$(BIN)/python -m tests.support.catalogues
	@$(MAKE) --no-print-directory $(MALAY).mo

screenshots: $(DEV) $(MALAY).mo  ## the pictures of docs/staff.md anew, from the sample day (needs Chromium)
	@mkdir -p var && VAR_DIR=var $(BIN)/python -m tests.browser.support.screens

sbom: $(PRODUCTION)  ## what a production contains, as CycloneDX: var/sbom.json
	@$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	    --output-file var/sbom.json var/runtime
	@$(BIN)/python .ci/sbom.py var/sbom.json requirements.txt

release: sbom  ## archive with wheels, chart, image, bill of materials, digests and signature in var/release/; SIGNING_KEY=file
	@.ci/release

audit: $(DEV)  ## known weaknesses of requirements-traces.txt, which has all of a production; fails if they cannot be looked up (network)
	@mkdir -p var && rm -f var/audit.txt
	@$(BIN)/pip-audit --requirement requirements-traces.txt --require-hashes --disable-pip --strict \
	    --progress-spinner off --output var/audit.txt \
	    || { test -s var/audit.txt && cat var/audit.txt \
	         || echo "NOT AUDITED: the list of known weaknesses could not be read." >&2; exit 1; }

lock: $(DEV)  ## resolve pyproject.toml into requirements*.txt; ARGS=--upgrade takes the newest
	@$(LOCK) $(ARGS) --output-file requirements.txt
	@$(LOCK) $(ARGS) $(TRACES) --output-file requirements-traces.txt
	@$(LOCK) $(ARGS) $(TRACES) --group dev --output-file requirements-dev.txt

check-lock: $(DEV)  ## whether requirements*.txt are what pyproject.toml resolves to; changes nothing
	@mkdir -p var/lock
	@cp requirements.txt requirements-traces.txt requirements-dev.txt var/lock/
	@$(LOCK) --output-file var/lock/requirements.txt
	@$(LOCK) $(TRACES) --output-file var/lock/requirements-traces.txt
	@$(LOCK) $(TRACES) --group dev --output-file var/lock/requirements-dev.txt
	@for file in requirements.txt requirements-traces.txt requirements-dev.txt; do \
	    diff -u $$file var/lock/$$file \
	        || { echo "$$file does not match pyproject.toml: run make lock." >&2; exit 1; }; \
	done

clean:  ## remove .venv/, var/, .bench/ and every cache
	rm -rf $(VENV) var .bench .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp file means "this lock file is installed": a second run is instant, and a changed
# lock file installs again.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "This service needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." >&2; \
	  echo "Name a newer one: make PYTHON=/path/to/python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "== creating $(VENV)/"
	@$(PYTHON) -m venv $(VENV)
	@touch $@

$(RUNTIME): $(VENV)/.created $(REQUIREMENTS)
	@echo "== installing $(REQUIREMENTS)"
	@$(PIP) install $(OFFLINE) --require-hashes --requirement $(REQUIREMENTS)
	@touch $@

# uv takes a tenth of the time. Where only pip is configured to reach an index, pip does it.
$(DEV): $(VENV)/.created requirements.txt requirements-dev.txt
	@echo "== installing requirements-dev.txt"
	@sed -n '/^uv==/,/[^\\]$$/p' requirements-dev.txt >$(VENV)/uv.txt
	@$(PIP) install --require-hashes --requirement $(VENV)/uv.txt
	@$(BIN)/uv --quiet pip install --python $(BIN)/python --require-hashes \
	    --requirement requirements-dev.txt \
	    || $(PIP) install --require-hashes --requirement requirements-dev.txt
	@touch $(RUNTIME) $@

# English is what the sources say. Without this file the pages are in English.
$(MALAY).mo: $(MALAY).po | $(RUNTIME)
	@$(BIN)/pybabel --quiet compile --locale ms --input-file $< --output-file $@

# What a production installs, and nothing else.
$(PRODUCTION): $(DEV) requirements.txt
	@echo "== installing only requirements.txt, in var/runtime/"
	@$(BIN)/uv --quiet venv --clear --python $(BIN)/python var/runtime
	@$(BIN)/uv --quiet pip install --python var/runtime/bin/python --require-hashes \
	    --requirement requirements.txt
	@touch $@
