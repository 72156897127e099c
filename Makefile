# Needs python3 (3.11 or newer, with venv), git and make; everything else is installed into .venv.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test test-all test-portable test-oldest lint others java javascript mariadb mosquitto superset console bench docs pages pictures wheel pythons security clean

demo: .venv/.installed-demo
	$(BIN)/deniable demo

# Linters take one core; what is installed meanwhile waits for the network, and Node's tests take another.
test: .venv/.installed-test
	$(MAKE) --jobs=2 lint others
	$(BIN)/pytest

# One after the other: only one of them can install at a time.
others: .venv/.installed-test
	@for target in java mariadb mosquitto javascript; do $(MAKE) --no-print-directory $$target || exit 1; done

test-all: lint java mariadb mosquitto superset
	$(MAKE) javascript DENIABLE_FUZZ_CASES=20000
	DENIABLE_THOROUGH=1 $(BIN)/pytest -m ''
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

# The MySQL port is tested with a client and a JDBC driver of MariaDB, where they can be installed without asking.
mariadb: .venv/.installed-test
	@command -v mariadb >/dev/null && [ -f /usr/share/java/mariadb-java-client.jar ] && exit; \
	if [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then \
	  echo "Installing MariaDB's clients for tests of the MySQL port"; \
	  $(APT) update >/dev/null 2>&1; \
	  $(APT) install -y --no-install-recommends mariadb-client libmariadb-java >/dev/null 2>&1; \
	fi; \
	command -v mariadb >/dev/null && [ -f /usr/share/java/mariadb-java-client.jar ] || \
	  echo "Some tests of the MySQL port are skipped. Run: apt-get install mariadb-client libmariadb-java (Debian)"

# Streams through MQTT are tested with Debian's broker, where it can be installed without asking. It is not started as a service.
HAVE_MOSQUITTO := PATH="$$PATH:/usr/sbin:/usr/local/sbin" command -v mosquitto >/dev/null

mosquitto: .venv/.installed-test
	@$(HAVE_MOSQUITTO) && exit; \
	if [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then \
	  echo "Installing mosquitto for tests of streams through MQTT"; \
	  $(APT) update >/dev/null 2>&1; \
	  RUNLEVEL=1 $(APT) install -y --no-install-recommends mosquitto >/dev/null 2>&1; \
	fi; \
	$(HAVE_MOSQUITTO) || echo "Tests of streams through MQTT are skipped. Run: apt-get install mosquitto (Debian)"

# Apache Superset has an environment of its own: it needs older versions of what others use, and does not declare all of it.
superset: .venv-superset/.installed

.venv-superset/.installed:
	$(PYTHON) -m venv --clear .venv-superset
	.venv-superset/bin/python -m pip --disable-pip-version-check --quiet install apache-superset 'flask-caching<2.4' \
	  rich cachetools pymysql && touch $@ || echo "Superset's test is skipped: it could not be installed."

# The console: built from npm packages into the Python package, and committed, so that users need no Node.js.
console:
	cd console && npm install --no-package-lock --no-audit --no-fund --silent && npm run --silent build

# The client for browsers and Node.js: its tests need Node.js 20, those in a browser Chromium, those of types and size the
# packages that package.json names. All are looked for, and installed where that is possible without asking.
JS := clients/javascript
HAVE_NODE := node -e 'process.exit(process.versions.node.split(".")[0] >= 20 ? 0 : 1)' 2>/dev/null
HAVE_CHROMIUM := { command -v chromium || command -v chromium-browser || command -v google-chrome; }

javascript: .venv/.installed-test
	@if [ "$$(id -u)" = 0 ] && [ -f /etc/debian_version ]; then \
	  if ! $(HAVE_NODE) || ! command -v npm >/dev/null || ! $(HAVE_CHROMIUM) >/dev/null; then \
	    echo "Installing Node.js and Chromium for the tests of the client in JavaScript"; \
	    $(APT) update >/dev/null 2>&1; \
	    for package in nodejs npm chromium; do \
	      case $$package in \
	        nodejs) $(HAVE_NODE) && continue;; \
	        npm) command -v npm >/dev/null && continue;; \
	        chromium) $(HAVE_CHROMIUM) >/dev/null && continue;; \
	      esac; \
	      $(APT) install -y --no-install-recommends $$package >/dev/null 2>&1 || true; \
	    done; \
	  fi; \
	fi; \
	if ! $(HAVE_NODE); then \
	  echo "Tests of the client in JavaScript are skipped: they need Node.js 20 or newer." \
	    "Run: apt-get install nodejs npm (Debian), or brew install node (macOS)"; \
	  exit 0; \
	fi; \
	if [ ! -e $(JS)/node_modules/.installed ] || [ $(JS)/package.json -nt $(JS)/node_modules/.installed ]; then \
	  (cd $(JS) && npm install --no-package-lock --no-audit --no-fund --silent >/dev/null 2>&1 && touch node_modules/.installed) || \
	    echo "Tests of the client's types, size and pages are skipped: npm could not install what package.json names."; \
	fi; \
	cd $(JS) && { [ ! -e node_modules/.installed ] || node build.js; } && node --test --test-reporter=dot tests/*.test.js && \
	if [ ! -e node_modules/.installed ]; then exit 0; \
	elif chromium=$$($(HAVE_CHROMIUM)); then CHROMIUM=$$chromium node --test --test-reporter=dot tests/browser/*.test.js; \
	else echo "Tests in a browser are skipped: they need Chromium. Run: apt-get install chromium (Debian)"; fi

# The pages in site/; every link and anchor has to lead somewhere.
docs: .venv/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "To read them: $(BIN)/python -m http.server --bind 127.0.0.1 --directory site"

# What is generated: pictures, the reference of names and commands.
pages: .venv/.installed-test
	$(BIN)/python docs/generate.py && $(BIN)/python docs/gallery.py && $(BIN)/python docs/beyond.py

# Pictures of the console, on what the demonstration collects.
pictures: .venv/.installed-test
	$(BIN)/deniable demo && $(BIN)/python docs/console_pictures.py demo/collected

# Known mistakes in our code, and known vulnerabilities in what it uses. Lists of vulnerabilities are asked for over the
# network; where they cannot be reached, that is said, and it is no failure. In CI they can.
# pip-audit says "No known vulnerabilities found" also if it could look nothing up.
UNREACHABLE := echo "NOT CHECKED: the list of known vulnerabilities could not be reached."
AUDITED := status=$$?; echo "$$found"; \
  echo "$$found" | grep -qiE 'found [0-9]+ known vulnerabilit|severity' && exit 1; \
  [ $$status = 0 ] && ! echo "$$found" | grep -q 'could not be audited' && exit 0; $(UNREACHABLE); [ -z "$$CI" ]

security: .venv/.installed-test
	$(PIP) install bandit pip-audit
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive src lab/src hatch_build.py
	@found=$$($(BIN)/pip-audit --skip-editable --progress-spinner off 2>&1); $(AUDITED)
	@for folder in clients/javascript console; do \
	  copy=$$(mktemp -d); cp $$folder/package.json $$copy; \
	  (cd $$copy && npm install --package-lock-only --no-audit --no-fund --silent >/dev/null 2>&1; \
	    found=$$(npm audit --audit-level=moderate 2>&1); $(AUDITED)); \
	  status=$$?; rm -rf $$copy; [ $$status = 0 ] || exit 1; \
	done

# A wheel that installs in an empty environment, without the lab; then the lab's, which adds its commands.
# Built twice, the files are the same: their times are that of the commit.
EMPTY := dist/empty/bin
BUILD := SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || echo 1577836800) $(BIN)/python -m build

wheel: .venv/bin/python
	$(PIP) install build twine
	rm -rf dist && $(BUILD) --outdir dist . >/dev/null && $(BUILD) --outdir dist lab >/dev/null
	$(BUILD) --outdir dist/again . >/dev/null && for file in dist/again/*; do cmp $$file dist/$${file##*/} || exit 1; done
	$(BIN)/python -m twine check --strict dist/*.whl dist/*.tar.gz
	! $(BIN)/python -m zipfile -l dist/deniable-*.whl | grep -E 'deniable_lab|experiments|benchmarks'
	! $(BIN)/python -m tarfile -l dist/deniable-*.tar.gz | grep -E 'deniable_lab|experiments|benchmarks'
	$(PYTHON) -m venv dist/empty && $(EMPTY)/python -m pip --quiet install dist/deniable-*.whl && $(EMPTY)/deniable --version
	! $(EMPTY)/deniable reproduce
	$(EMPTY)/python -m pip --quiet install dist/deniable_lab-*.whl && $(EMPTY)/deniable reproduce

# The wheel alone on every Python that this machine has, from 3.11: the README's Python runs there as it says. PYTHONS
# names others, as in: make pythons PYTHONS='/opt/python3.14/bin/python3'
PYTHONS ?= $$(for minor in 11 12 13 14; do ls -d /usr/bin/python3.$$minor /usr/local/bin/python3.$$minor \
  $$HOME/.pyenv/versions/3.$$minor.*/bin/python3 2>/dev/null | tail -1; done)

pythons: wheel
	for python in $(PYTHONS); do \
	  $$python --version && rm -rf dist/tried && $$python -m venv dist/tried \
	    && dist/tried/bin/python -m pip --disable-pip-version-check --quiet install dist/deniable-*.whl \
	    && (mkdir dist/tried/folder && cd dist/tried/folder && ../bin/deniable --version \
	      && ../bin/python -m doctest $(CURDIR)/README.md) || exit 1; \
	done

bench: .venv/.installed-bench
	$(BIN)/deniable bench mechanisms

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The library, and for some the lab (bench, reproduce), both from this checkout.
PROJECTS := pyproject.toml lab/pyproject.toml

# uv installs in a third of pip's time, from where pip is told to look. Where there is no uv, or it cannot, pip installs.
LOOKED_UP = "$$(echo "$$told" | sed -n "s/^[^=]*[.]$(1)='\(.*\)'$$/\1/p" | head -1)"
INSTALL = installed() { \
    told=$$($(PIP) config list 2>/dev/null); \
    $(PIP) install uv 2>/dev/null && \
    UV_DEFAULT_INDEX=$(call LOOKED_UP,index-url) UV_INDEX=$(call LOOKED_UP,extra-index-url) \
    UV_FIND_LINKS=$(call LOOKED_UP,find-links) UV_INDEX_STRATEGY=unsafe-best-match \
    $(BIN)/uv pip install --quiet --python .venv "$$@" 2>/dev/null || $(PIP) install "$$@"; \
  }; installed

.venv/.installed: pyproject.toml | .venv/bin/python
	$(PIP) install --editable .
	touch $@

.venv/.installed-demo: pyproject.toml | .venv/bin/python
	$(PIP) install --editable '.[plot,serve]'
	touch $@ .venv/.installed

.venv/.installed-test: $(PROJECTS) | .venv/bin/python
	@$(INSTALL) --editable '.[test]' --editable ./lab
	touch $@ .venv/.installed .venv/.installed-demo

.venv/.installed-docs: $(PROJECTS) | .venv/bin/python
	$(PIP) install --editable '.[docs,plot]' --editable ./lab
	touch $@ .venv/.installed

.venv/.installed-bench: $(PROJECTS) | .venv/bin/python
	$(PIP) install --editable . --editable './lab[peers]'
	touch $@ .venv/.installed

.venv-oldest/.installed: $(PROJECTS)
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip --disable-pip-version-check --quiet install uv
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest --resolution lowest-direct --editable '.[test]' \
	  --editable ./lab
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-superset
