# Everything a developer or CI does with the project. Each target installs what it needs into .venv/
# first; on a machine that has only Python, Java 17 and Maven, `make run` and `make test` just work.

PYTHON ?= python3
# Two workers more than there are cores: tests of clients mostly wait.
JOBS   ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 2)')
ARGS   ?=
# Which tests `make test` runs, by an expression of markers; MARKED= stands for all of them.
MARKED ?= not slow

VENV   := .venv
BIN    := $(VENV)/bin
# What `serve` needs, and what development needs as well.
SERVES := $(VENV)/.serves
STAMP  := $(VENV)/.installed
WARM   := $(VENV)/.bytecode
PYTEST := $(BIN)/python -m pytest
# A page is made of models that only the tests use.
GENERATE := PYTHONPATH=. $(BIN)/python docs/generate
# tests/support/sharing.py groups tests that share an expensive thing (a JVM, a real broker) and
# begins with what takes longest. `make durations` measures that anew.
PARALLEL := -n $(JOBS) --dist loadscope

# Images of containers forbid Python to write bytecode. The tests start hundreds of processes: each
# would compile every module anew, and each worker would rewrite the assertions of every test.
export PYTHONDONTWRITEBYTECODE :=

# Beside the one that is installed; see mockbroker/spark/versions.py.
SPARK_VERSIONS := 3.5.1 4.2.0
SPARK_VENVS    := .cache/venvs

.DEFAULT_GOAL := help
.PHONY: help install run bytecode test test-slow test-failed test-quick test-java test-spark test-spark-versions \
        test-node test-go test-browser test-real test-audited fuzz fuzz-corpus mutants mutants-all flakes durations check \
        exhaustive simulate simulate-real planted lint types types-mypy types-pyright layers generated \
        generate format chromium bench bench-trees docs screenshots clean lock dist sbom vulnerabilities comparison soak

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) chromium ## create .venv/ with everything pinned (quick when nothing changed)

# pip's resolver sees the pins of requirements/constraints.txt, and so does its build isolation.
# Python compiles what is imported, a small part of what is installed.
INSTALL := PIP_CONSTRAINT=requirements/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 \
	  $(BIN)/python -m pip install --quiet --no-compile --editable
REQUIREMENTS := pyproject.toml requirements/constraints.txt

define venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "mockbroker needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV)
endef

$(SERVES): $(REQUIREMENTS)
	$(venv)
	@echo "installing what the cluster needs into $(VENV)/"
	@$(INSTALL) .
	@touch $@

$(STAMP): $(REQUIREMENTS)
	$(venv)
	@echo "installing everything into $(VENV)/; the first time takes a minute or two"
	@$(INSTALL) '.[dev]'
	@touch $(SERVES) $@

run: $(SERVES) ## start a cluster of three brokers; more flags with ARGS="--topic orders:6"
	@exec $(BIN)/mockbroker serve $(ARGS)

# Tests of the console need Chromium, which comes from Debian and not from an index of Python's.
# Without it they skip, and say so; in CI they must not.
APT := DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 -qq

chromium:
	@command -v chromium > /dev/null \
	  || { [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null && echo "installing chromium" \
	    && $(APT) update && $(APT) install --yes --no-install-recommends chromium > /dev/null; } \
	  || echo "chromium is missing: tests of the console will skip" >&2

# In a fresh checkout each worker would compile the same modules and rewrite the same assertions,
# which takes four times what is left to do then.
bytecode: $(WARM)

$(WARM): $(STAMP)
	@echo "compiling the tests and what they import"
	@$(PYTEST) --collect-only -qq > $@.log || { cat $@.log; exit 1; }
	@mv $@.log $@

test: $(WARM) chromium ## run the tests in parallel, without the slow ones (MARKED= runs all); narrow it with ARGS="-k fetch"
	$(PYTEST) $(PARALLEL) -m '$(MARKED)' $(ARGS)

test-slow: $(WARM) ## what takes too long for every change: more seeds, whole plans on real brokers
	$(PYTEST) $(PARALLEL) -m slow $(ARGS)

test-failed: $(STAMP) ## run what failed last time once more, one test at a time
	$(PYTEST) --last-failed --last-failed-no-failures none $(ARGS)

test-quick: $(WARM) ## only the tests that need nothing but Python
	$(PYTEST) $(PARALLEL) -m 'not (slow or java or spark or node or go or browser or real_kafka)' $(ARGS)

test-java: $(STAMP) ## the Java clients and the oracle of Kafka's own classes
	$(PYTEST) $(PARALLEL) -m java $(ARGS)

test-spark: $(STAMP) ## PySpark with the Kafka connector
	$(PYTEST) $(PARALLEL) -m spark $(ARGS)

# Each in an environment of its own, with the same pins otherwise. Too slow for every change.
test-spark-versions: $(SPARK_VERSIONS:%=test-spark-%) ## PySpark in the other versions, for the night

test-spark-%: $(SPARK_VENVS)/spark-%/.installed
	$(SPARK_VENVS)/spark-$*/bin/python -m pytest tests/spark tests/pipeline/spark -m spark $(ARGS)

.PRECIOUS: $(SPARK_VENVS)/spark-%/.installed
$(SPARK_VENVS)/spark-%/.installed: pyproject.toml requirements/constraints.txt
	$(PYTHON) -m venv --clear $(@D)
	grep -vE '^(pyspark|py4j)==' requirements/constraints.txt > $(@D)/constraints.txt
	PIP_CONSTRAINT=$(@D)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(@D)/bin/python -m pip \
	  install --quiet --editable '.[pytest,tls,pipeline,clients]' pyspark==$* \
	  hypothesis pytest-timeout pytest-xdist setuptools
	@touch $@

test-node: $(STAMP) ## kafkajs
	$(PYTEST) $(PARALLEL) -m node $(ARGS)

test-go: $(STAMP) ## franz-go
	$(PYTEST) $(PARALLEL) -m go $(ARGS)

test-browser: $(STAMP) chromium ## the console in Chromium
	$(PYTEST) $(PARALLEL) -m browser $(ARGS)

test-real: $(STAMP) ## side by side with a real Kafka broker
	$(PYTEST) $(PARALLEL) -m real_kafka $(ARGS)

test-audited: $(STAMP) ## every cluster of the client tests goes through the audit when it stops
	$(PYTEST) $(PARALLEL) -p tests.support.audited tests/clients tests/patterns $(ARGS)

exhaustive: $(STAMP) ## every order of a few events in each state machine; some minutes
	$(BIN)/python -m tests.simulation.exhaustive --counts docs/_data/exhaustive.json $(ARGS)

simulate: $(STAMP) ## clusters with clients and faults, each from one number: make simulate SEEDS=1000
	$(BIN)/mockbroker simulate --seeds $(or $(SEEDS),1000) --jobs $(or $(SIM_JOBS),2) $(ARGS)

simulate-real: $(STAMP) ## the same plans and laws with three real brokers: make simulate-real PLANS=20
	$(BIN)/python -m tests.simulation.real --plans $(or $(PLANS),20) $(ARGS)

planted: $(STAMP) ## planted bugs, and what the simulator finds of them; an hour for all: make planted ARGS="--bug NAME"
	$(BIN)/python -m tests.simulation.planted --jobs $(or $(SIM_JOBS),2) $(ARGS)
	$(GENERATE)

fuzz: $(STAMP) ## hostile bytes into every parser and handler: make fuzz INPUTS=50_000_000 SEED=7
	$(BIN)/python -m tests.fuzz --inputs $(or $(INPUTS),300_000) --seed $(or $(SEED),0) $(ARGS)

fuzz-corpus: $(STAMP) ## keep the inputs that reach lines of a parser no other input reaches
	$(BIN)/python -m tests.fuzz.refresh $(ARGS)

# Only the listing of mutants needs cosmic-ray, which would bring a dozen packages along.
COSMIC_RAY := .cache/venvs/cosmic-ray
MUTANTS    := $(BIN)/python -m tests.mutation --listing-python $(COSMIC_RAY)/bin/python

$(COSMIC_RAY)/.installed:
	$(PYTHON) -m venv --clear $(COSMIC_RAY)
	$(COSMIC_RAY)/bin/python -m pip install --quiet --disable-pip-version-check cosmic-ray==8.7.0
	@touch $@

mutants: $(STAMP) $(COSMIC_RAY)/.installed ## small changes of the source, which tests have to notice: make mutants SIZE=200 SEED=1
	$(MUTANTS) --size $(or $(SIZE),200) --seed $(or $(SEED),0) $(ARGS)

mutants-all: $(STAMP) $(COSMIC_RAY)/.installed ## every mutant there is, for a few nights; ARGS="--package log --resume"
	$(MUTANTS) --all $(ARGS)

flakes: $(STAMP) ## tests that fail in some of many runs: make flakes RUNS=20 ARGS=tests/core
	$(BIN)/python -m tests.flakes --runs $(or $(RUNS),20) $(ARGS)

durations: $(STAMP) ## measure how long the parts of the tests take, by which they are shared out
	$(PYTEST) $(PARALLEL) --durations-report=tests/durations.json $(ARGS)

check: lint types layers generated ## everything that needs no test run

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: types-mypy types-pyright

types-mypy: $(STAMP)
	$(BIN)/mypy

types-pyright: $(STAMP)
	$(BIN)/pyright

layers: $(STAMP)
	$(BIN)/lint-imports

generated: $(STAMP)
	$(GENERATE) --check

generate: $(STAMP) ## refresh the generated and committed files (message classes, pages of the docs)
	$(GENERATE)

format: $(STAMP) ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## compare with real Kafka, kfake and librdkafka's mock on this machine
	$(BIN)/python -m bench $(ARGS)

bench-trees: $(STAMP) ## what requests cost now, by what they cost at a commit: make bench-trees COMMIT=HEAD~1
	$(BIN)/python -m bench.trees $(or $(COMMIT),HEAD) $(ARGS)

soak: $(STAMP) ## a cluster under all kinds of clients and faults: make soak MINUTES=60
	$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),3) $(ARGS)

comparison: build/bench.json ## the page of comparison with the figures of the last `make bench`
	$(BIN)/python docs/generate/comparison.py $< > build/comparison.md
	@echo "written: build/comparison.md"

docs: $(STAMP) ## build the docs as HTML
	$(GENERATE)
	$(BIN)/sphinx-build --fail-on-warning --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

screenshots: $(STAMP) chromium ## take the pictures of the report and the console in the docs again
	$(BIN)/python docs/screenshots/report.py
	$(BIN)/python docs/screenshots/console.py

clean: ## remove what was built; .venv/ and .cache/ (downloaded jars) stay
	rm -rf build dist docs/_build .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache \
	  .import_linter_cache .hypothesis spark-warehouse
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +

dist: $(STAMP) ## build wheel and sdist into dist/, as a release does
	$(BIN)/python -m hatchling build --target sdist --target wheel

sbom: $(STAMP) ## write build/sbom.json: what the package needs, as CycloneDX; EXTRAS="tls pipeline"
	@mkdir -p build
	$(BIN)/python requirements/sbom.py $(EXTRAS) > build/sbom.json

vulnerabilities: ## known vulnerabilities of the pinned versions, by pip-audit; asks the network
	$(PYTHON) -m venv --clear .cache/venvs/pip-audit
	.cache/venvs/pip-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1
	.cache/venvs/pip-audit/bin/pip-audit --strict --no-deps --disable-pip --requirement requirements/constraints.txt

lock: ## resolve the newest versions and pin them in requirements/constraints.txt
	$(PYTHON) requirements/lock.py
