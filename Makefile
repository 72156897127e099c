# Needs python3 (3.11 or newer, with venv), git and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-all test-portable test-oldest lint java bench docs pages wheel clean

demo: .venv/.installed-plot
	$(BIN)/deniable demo

test: lint java
	$(BIN)/pytest

test-all: lint java
	$(BIN)/pytest -m ''
	$(MAKE) test-portable test-oldest

# Everything with floats in it. Spark computes with the same functions, and takes long to start.
FLOATS := tests/queries tests/engines tests/database tests/streams tests/stores tests/mechanisms tests/tables lab/tests \
  tests/test_readme.py tests/test_documented_commands.py tests/test_mistakes.py src lab/src --ignore=tests/engines/spark

# Other processors round other last bits: first as on one of 2008 with a single thread, then with four threads.
FOUND := import numpy; print(*numpy.show_config(mode="dicts")["SIMD Extensions"].get("found", []))

test-portable: .venv/.installed-test
	NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c '$(FOUND)')" NUMBA_CPU_NAME=generic OPENBLAS_CORETYPE=Nehalem \
	  OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 $(BIN)/pytest $(FLOATS)
	OPENBLAS_NUM_THREADS=4 OMP_NUM_THREADS=4 NUMBA_NUM_THREADS=4 $(BIN)/pytest $(FLOATS)

# The lowest versions that pyproject.toml declares.
test-oldest: .venv-oldest/.installed
	.venv-oldest/bin/pytest $(FLOATS)
	.venv-oldest/bin/pytest tests/engines/spark/test_spark_answers.py

lint: .venv/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Spark's tests need Java 17 or newer: it is looked for, and installed where that is possible without asking.
HAVE_JAVA := $(BIN)/python -c 'from deniable.engines.spark.spark_session import require_java; require_java()' 2>/dev/null
APT := DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120

java: .venv/.installed-test
	@$(HAVE_JAVA) && exit; \
	if [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then \
	  echo "Installing Java for Spark's tests"; \
	  $(APT) update >/dev/null 2>&1; \
	  for version in 17 21 25; do \
	    $(APT) install -y --no-install-recommends openjdk-$$version-jre-headless >/dev/null 2>&1 && break; \
	  done; \
	fi; \
	$(HAVE_JAVA) || echo "Spark's tests are skipped: they need Java 17 or newer." \
	  "Run: apt-get install openjdk-17-jre-headless (Debian), or brew install openjdk@17 (macOS)"

# The pages in site/; every link and anchor has to lead somewhere.
docs: .venv/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "Open site/index.html"

# What is generated: pictures, the reference of names and commands.
pages: .venv/.installed-test
	$(BIN)/python docs/generate.py

# A wheel that installs in an empty environment, without the lab; then the lab's, which adds its commands.
EMPTY := dist/empty/bin

wheel: .venv/bin/python
	$(PIP) install build
	rm -rf dist && $(BIN)/python -m build --outdir dist . >/dev/null && $(BIN)/python -m build --outdir dist lab >/dev/null
	! $(BIN)/python -m zipfile -l dist/deniable-*.whl | grep -E 'deniable_lab|experiments|benchmarks'
	! $(BIN)/python -m tarfile -l dist/deniable-*.tar.gz | grep -E 'deniable_lab|experiments|benchmarks'
	$(PYTHON) -m venv dist/empty && $(EMPTY)/python -m pip --quiet install dist/deniable-*.whl && $(EMPTY)/deniable --version
	! $(EMPTY)/deniable reproduce
	$(EMPTY)/python -m pip --quiet install dist/deniable_lab-*.whl && $(EMPTY)/deniable reproduce

bench: .venv/.installed-bench
	$(BIN)/deniable bench mechanisms

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The library, and for some the lab (bench, reproduce), both from this checkout.
PROJECTS := pyproject.toml lab/pyproject.toml

.venv/.installed: pyproject.toml | .venv/bin/python
	$(PIP) install --editable .
	touch $@

.venv/.installed-plot: pyproject.toml | .venv/bin/python
	$(PIP) install --editable '.[plot]'
	touch $@ .venv/.installed

.venv/.installed-test: $(PROJECTS) | .venv/bin/python
	$(PIP) install --editable '.[test]' --editable ./lab
	touch $@ .venv/.installed .venv/.installed-plot

.venv/.installed-docs: $(PROJECTS) | .venv/bin/python
	$(PIP) install --editable '.[docs,plot]' --editable ./lab
	touch $@ .venv/.installed .venv/.installed-plot

.venv/.installed-bench: $(PROJECTS) | .venv/bin/python
	$(PIP) install --editable . --editable './lab[peers]'
	touch $@ .venv/.installed .venv/.installed-plot

.venv-oldest/.installed: $(PROJECTS)
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip --disable-pip-version-check --quiet install uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest --resolution lowest-direct --editable '.[test]' \
	  --editable ./lab
	touch $@

clean:
	rm -rf .venv .venv-oldest
