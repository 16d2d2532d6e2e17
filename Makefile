# Two commands do everything on a machine that has Python 3.11 or later and a C/C++ compiler:
#   make demo   installs into .venv, runs the shipped example, says where its report lies
#   make test   installs what the tests need, runs them all
# What else CI runs (lint, types, stubs, ...) are the sessions of noxfile.py: `make nox`.

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check --no-input
DEBUG_VENV := .venv-debug
DEBUG_PIP := $(DEBUG_VENV)/bin/python -m pip --disable-pip-version-check --no-input
NOX := build/nox/bin/nox
DEMO := build/demo
# One test process a core; what shares a slow fixture stays together.
SPREAD := --numprocesses=auto --maxprocesses=8 --dist=loadgroup

SOURCES := pyproject.toml CMakeLists.txt README.md LICENSE \
	$(shell find src -type f -not -name '*.pyc' -not -name '.*')
# Dependency groups need pip 25.1; an older Python brings an older pip.
WITH_GROUPS := 'pip>=25.1'

.DELETE_ON_ERROR:
.PHONY: help demo test test-release native wheel nox gates clean

help:
	@sed -n 's/^#  *\(make .*\)/\1/p' Makefile

demo: $(VENV)/installed
	$(VENV)/bin/pyresched simulate examples/cluster.swf.gz --node-file examples/nodes.yaml \
		--failures examples/failures.csv --config examples/pyresched.toml --out $(DEMO) --force
	@echo "The report: $(CURDIR)/$(DEMO)/report.html (opens in any browser, needs no network)"

test: test-release native

# Everything that runs on the package as users install it.
test-release: $(VENV)/tested
	$(VENV)/bin/python -m pytest $(SPREAD) $(PYTEST_ARGS)

# The cases inside the native core: they need a debug build, in a folder and .venv of its own.
native: $(DEBUG_VENV)/tested
	PYRESCHED_DEV=1 $(DEBUG_VENV)/bin/python -m pytest tests/native $(PYTEST_ARGS)

# The wheel of the sources as they are; built once for every user of it.
wheel: build/wheels/built

build/wheels/built: $(SOURCES) | $(VENV)/bin/python
	rm -rf build/wheels
	$(PIP) wheel --quiet --no-deps --wheel-dir build/wheels .
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is older than 3.11; say which one to use: make PYTHON=python3.12 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --upgrade $(WITH_GROUPS)

$(VENV)/installed: build/wheels/built
	wheel=$$(echo build/wheels/*.whl) && \
		$(PIP) install --quiet --force-reinstall --no-deps "$$wheel" && \
		$(PIP) install --quiet "$$wheel[all]"
	@touch $@

$(VENV)/tested: $(VENV)/installed
	$(PIP) install --quiet --group test
	@touch $@

$(DEBUG_VENV)/tested: $(SOURCES) | $(VENV)/bin/python
	$(VENV)/bin/python -m venv $(DEBUG_VENV)
	$(DEBUG_PIP) install --quiet --upgrade $(WITH_GROUPS)
	PYRESCHED_DEV=1 $(DEBUG_PIP) install --quiet .
	$(DEBUG_PIP) install --quiet --group test
	@touch $@

nox: $(NOX)
	$(NOX)

# A million ids and jobs beside their rivals: half an hour.
gates: $(NOX)
	$(NOX) --session gates -- --json=build/gates.json

$(NOX): | $(VENV)/bin/python
	$(VENV)/bin/python -m venv build/nox
	build/nox/bin/python -m pip install --quiet --disable-pip-version-check --upgrade $(WITH_GROUPS)
	build/nox/bin/python -m pip install --quiet --disable-pip-version-check --group nox

clean:
	rm -rf build dist $(VENV) $(DEBUG_VENV) .nox
