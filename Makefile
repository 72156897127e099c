# Needs python3 (3.11 or newer, with venv), git and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-all lint bench clean

demo: .venv/.installed
	$(BIN)/deniable demo

test: lint
	$(BIN)/pytest

test-all: lint
	$(BIN)/pytest -m ''

lint: .venv/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.installed-bench
	$(BIN)/deniable bench mechanisms

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml | .venv/bin/python
	$(PIP) install --editable .
	touch $@

.venv/.installed-test: pyproject.toml | .venv/bin/python
	$(PIP) install --editable '.[test]'
	touch $@ .venv/.installed

.venv/.installed-bench: pyproject.toml | .venv/bin/python
	$(PIP) install --editable '.[bench]'
	touch $@ .venv/.installed

clean:
	rm -rf .venv
