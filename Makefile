# `make demo` and `make test` need Python 3.10 or newer and make; each sets itself up.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
KAFKA ?= 4.3.0 3.9.1
PYTEST_ARGS ?=
# Test files run side by side: most of a test on real Kafka and Spark is waiting. Their order is that
# of integration/conftest.py.
WORKERS ?= 3
SIDE_BY_SIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
export PYTHON

SOURCES := eos_sink pyspark_kafka_eos tests integration

# What a set-up depends on; its stamp is newer than these or it is done again.
WANTS := setup.cfg pyproject.toml tools/setup

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.setup-dev ## Make .venv with everything that development needs

$(VENV)/.setup-demo: $(WANTS)
	@tools/setup demo
	@touch $@

$(VENV)/.setup-dev: $(WANTS)
	@tools/setup dev
	@touch $@ $(VENV)/.setup-demo

.PHONY: java
java: | $(VENV)/.setup-demo ## Say which Java the broker and Spark will run on
	@$(BIN)/python -m eos_sink.testing.java

.PHONY: kafka
kafka: $(VENV)/.setup-demo ## Bring Kafka's jars into the cache (KAFKA="4.3.0 3.9.1")
	@$(BIN)/python -m eos_sink.testing.kafka_files $(KAFKA)

.PHONY: demo
demo: $(VENV)/.setup-demo ## Real flights through a real Kafka while the driver is killed
	@$(BIN)/eos-sink demo

.PHONY: test
test: $(VENV)/.setup-dev kafka ## What each change has to pass: units, real Kafka and real Spark
	$(BIN)/python -m pytest tests integration $(SIDE_BY_SIDE) $(PYTEST_ARGS)

.PHONY: test-unit
test-unit: $(VENV)/.setup-dev ## The tests that need no broker, in seconds
	$(BIN)/python -m pytest tests $(PYTEST_ARGS)

.PHONY: test-integration
test-integration: $(VENV)/.setup-dev kafka ## The tests on real Kafka and Spark
	$(BIN)/python -m pytest integration $(PYTEST_ARGS)

# Many of these start clusters, Sparks or installations of their own.
.PHONY: test-long
test-long: WORKERS := 2
test-long: $(VENV)/.setup-dev kafka ## The tests that take long, most of them on real Kafka and Spark
	$(BIN)/python -m pytest tests integration -m long $(SIDE_BY_SIDE) $(PYTEST_ARGS)

.PHONY: lint
lint: $(VENV)/.setup-dev ## Style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(VENV)/.setup-dev ## Put the code into its format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: coverage
coverage: $(VENV)/.setup-dev ## The tests without a broker, with what they leave out
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests -q $(PYTEST_ARGS)
	$(BIN)/coverage combine
	$(BIN)/coverage report

.PHONY: docs
docs: $(VENV)/.setup-dev ## Build the documentation as a site into build/site; a broken link fails
	@$(BIN)/python -m tools.site

# PORT=9000 for another port.
.PHONY: docs-serve
docs-serve: $(VENV)/.setup-dev ## Show it at http://localhost:8000
	@$(BIN)/python -m tools.site --serve localhost:$(or $(PORT),8000)

.PHONY: spec
spec: ## Check the model of the protocol (needs spin and gcc)
	@spec/run.sh

.PHONY: spec-short
spec-short: ## The same in under a minute: fewer rows
	@spec/run.sh short

.PHONY: guards
guards: $(VENV)/.setup-dev kafka ## Take each guard of the protocol away; a test has to notice
	@nice $(BIN)/python -m tools.guards

# ROUNDS=3 for fewer; `python -m bench.sinks --help` tells of shapes and peers. What is measured goes
# into docs/bench.md with `python -m bench.publish`.
.PHONY: bench
bench: $(VENV)/.setup-dev kafka ## Measure beside Spark's own sink, on the main shapes
	@$(BIN)/python -m bench.sinks $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-full
bench-full: $(VENV)/.setup-dev kafka ## The same with all shapes, and with Flink
	@$(BIN)/python -m bench.sinks --full $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-scale
bench-scale: $(VENV)/.setup-dev kafka ## Measure what a driver's steps cost by tasks; minutes, writes docs/scale.md
	@$(BIN)/python -m bench.settle
	@$(BIN)/python -m bench.requests
	@$(BIN)/python -m bench.publish settling formulas 'what follows'

# HOURS=1.1 for a long run, SEED=7 to repeat one, OUT=... for another directory.
.PHONY: chaos
chaos: $(VENV)/.setup-dev kafka ## Every fault there is, for minutes or HOURS=..., with a report
	@$(BIN)/python -m chaos $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) $(if $(OUT),--out $(OUT))

# CELL=4.2.1-3.12-3.9.1 for Spark 4.2.1, Python 3.12 and Kafka 3.9.1; it may have a *.
.PHONY: matrix
matrix: $(VENV)/.setup-dev kafka ## Each Spark, Python and Kafka, installed with pip, or CELL=...
	@$(BIN)/python -m matrix $(if $(CELL),--cell '$(CELL)')

.PHONY: clean
clean: ## Remove what builds and tests left behind (not .venv)
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* spark-warehouse metastore_db derby.log
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove .venv too
	rm -rf $(VENV)
