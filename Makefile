# Two commands do all their set-up themselves, with Python 3.11+ and nothing else: `make demo` and `make test`.
.DEFAULT_GOAL := help
.PHONY: help demo test lint scale lowest explore bench docs schemas image-lock release clean

PYTHON ?= $(shell for p in python3 python3.15 python3.14 python3.13 python3.12 python3.11; do \
	  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
BIN := .venv/bin
# Each worker collects all tests, and hardly any of them waits: one worker more than cores. Slow tests wait for servers,
# locks and commands: two workers for each core.
CORES := $(shell getconf _NPROCESSORS_ONLN)
test lowest explore release: WORKERS ?= $(shell expr $(CORES) + 1)
scale: WORKERS ?= $(shell expr $(CORES) '*' 2)
CLIENTS := .venv/clients
DOCS := .venv/docs
LOWEST := .venv/lowest
# The lowest versions of the libraries support the lowest version of Python.
LOWEST_PYTHON ?= $(shell for p in python3.11 $(PYTHON); do $$p -c '' 2>/dev/null && { echo $$p; break; }; done)

# Tests start many commands: without bytecode, each of them compiles msauto again.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make demo     the main workflow on an embedded media server, with pauses on a terminal"
	@echo "make test     all tests but the slow ones"
	@echo "make lint     ruff, mypy, import-linter, codespell, our own checks (tests/lint)"
	@echo "make scale    the slow tests"
	@echo "make lowest   tests with the lowest versions of the libraries that pyproject.toml allows"
	@echo "make explore  the property tests, with random examples"
	@echo "make docs     the documentation: build/html, and man pages in build/man"
	@echo "make bench    the benchmarks, as ratios"
	@echo "make image-lock  the libraries of the image with their hashes, newest versions: image.lock.txt"
	@echo "make release  sdist, wheel and SBOM in dist/, tried alone; publishes nothing"

.venv/.made:
	@test -n "$(PYTHON)" || { echo "msauto needs Python 3.11 or newer; none was found on PATH" >&2; exit 1; }
	@$(PYTHON) -m venv .venv && $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

.venv/.demo: .venv/.made pyproject.toml
	@echo "Installing msauto into .venv (once) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

.venv/.dev: .venv/.demo pyproject.toml
	@echo "Installing the tools of the tests into .venv (once) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev
	@touch $@

.venv/.clients: .venv/.made
	@echo "Installing Ansible, a baseline of bench/, into .venv/clients (once) ..." >&2
	@$(PYTHON) -m venv $(CLIENTS) && $(CLIENTS)/bin/python -m pip install --quiet --disable-pip-version-check ansible-core
	@touch $@

# Where no browser can be installed, the tests in tests/browser are skipped, with the reason.
.venv/.scale: .venv/.dev pyproject.toml
	@echo "Installing what slow tests need (Playwright, a notebook, pyright) into .venv (once) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group scale
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || $(BIN)/playwright install --with-deps chromium \
	  || echo "Chromium cannot be installed: the tests of the HTML report will be skipped" >&2
	@touch $@

.venv/.docs: .venv/.made pyproject.toml
	@echo "Installing Sphinx into $(DOCS) (once) ..." >&2
	@$(PYTHON) -m venv $(DOCS) && $(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@$(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check --editable . --group docs
	@touch $@

.venv/.release: .venv/.dev pyproject.toml
	@echo "Installing what builds and tries a release into .venv (once) ..." >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --group release
	@touch $@

# The tools of the tests have their newest versions.
.venv/.lowest: .venv/.made pyproject.toml
	@echo "Installing the lowest versions of the libraries into $(LOWEST) (once) ..." >&2
	@{ $(LOWEST_PYTHON) -m venv $(LOWEST) && $(LOWEST)/bin/python -m tests.wheel.lowest_versions > $(LOWEST)/lowest.txt \
	  && $(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' \
	  && $(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/lowest.txt --editable . \
	  && $(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/lowest.txt --group dev; } \
	  || { echo "The lowest versions cannot be installed: see above. Either the package index cannot be reached, or it lacks a" \
	       "version that pyproject.toml names." >&2; exit 1; }
	@touch $@

demo: .venv/.demo
	@$(BIN)/msauto demo

test: .venv/.dev
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not scale" $(ARGS)

# Tests that need a worker of their own (a large server state) name an `xdist_group`.
scale: .venv/.dev .venv/.scale
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m scale $(ARGS)

lowest: .venv/.lowest
	@$(LOWEST)/bin/python -m pytest -n $(WORKERS) -m "not scale" tests/unit tests/wire $(ARGS)

# Random examples and worlds. What fails is printed, kept in .hypothesis, and fixed with a test of its own.
explore: .venv/.dev
	@MSAUTO_WORLD=random $(BIN)/python -m pytest -n $(WORKERS) -m "hypothesis or worlds" --hypothesis-profile explore $(ARGS)

lint: .venv/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell
	@$(BIN)/python -m tests.lint

bench: .venv/.dev .venv/.clients
	@$(BIN)/python -m bench

# Broken links and anchors are errors (-W -n). The pages are read once, for both forms.
docs: .venv/.docs
	@$(DOCS)/bin/python -m sphinx -q -E -W -n --keep-going -d build/doctrees -b html docs build/html
	@$(DOCS)/bin/python -m sphinx -q -W -n --keep-going -d build/doctrees -b man docs build/man
	@$(DOCS)/bin/python -m tests.docs.built_site build

schemas: .venv/.dev
	@for name in playbook tasks handlers inventory settings plan batch batch-result events; do $(BIN)/msauto schema $$name > schemas/$$name.json || exit 1; done

# The libraries of the image, each with its hashes: resolved for the Python of the Containerfile, and for all extras.
IMAGE_PYTHON ?= python3.12
EXTRAS = $(shell sed -n 's/.*msauto\[\([a-z,]*\)\].*/\1/p' pyproject.toml)
image-lock:
	@$(IMAGE_PYTHON) -m venv .venv/image && .venv/image/bin/python -m pip install --quiet --disable-pip-version-check pip-tools
	@.venv/image/bin/pip-compile --quiet --upgrade --strip-extras --generate-hashes --allow-unsafe --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra $(EXTRAS) --build-deps-for wheel \
	  --pip-args "--only-binary=:all:" --output-file image.lock.txt pyproject.toml

# Builds what a release consists of, tries the wheel alone, and lists what it brings along (SBOM), whose licences must be
# among these. CONTRIBUTING.md has the steps before and after.
LICENCES := MIT;BSD;Apache;ISC;PSF-2.0;Python Software Foundation License;MPL-2.0;Mozilla Public License 2.0;LGPL-3.0-only
RELEASED := .venv/released
release: .venv/.release
	@rm -rf dist && $(BIN)/python -m build --outdir dist
	@MSAUTO_WHEEL=$$(echo $(CURDIR)/dist/*.whl) $(BIN)/python -m pytest -n $(WORKERS) tests/wheel/test_wheel.py
	@$(BIN)/python -m venv --clear --without-pip $(RELEASED)
	@$(BIN)/python -m pip --python $(RELEASED)/bin/python install --quiet "$$(echo dist/*.whl)[$(EXTRAS)]"
	@rm $(RELEASED)/lib/*/site-packages/msauto-*.dist-info/direct_url.json # the path of this clone
	@$(BIN)/pip-licenses --python $(RELEASED)/bin/python --from=mixed --partial-match --allow-only "$(LICENCES)"
	@$(BIN)/cyclonedx-py environment --output-reproducible --of JSON -o dist/msauto.cdx.json $(RELEASED)/bin/python
	@cd dist && sha256sum *
	@echo "Nothing is published. CONTRIBUTING.md, Releases, has the next steps."

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
