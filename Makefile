# `make demo` and `make test` need Python 3.10 or newer and make; each sets itself up.

SHELL := /bin/bash
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
KAFKA ?= 4.3.0 3.9.1
PYTEST_ARGS ?=
# Tests run in parallel, because those on real Kafka and Spark mostly wait. Their order, and what stays
# together, is that of integration/conftest.py.
WORKERS ?= 3
SIDE_BY_SIDE = -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
export PYTHON

# The set-up is repeated if one of these files is newer than its stamp.
WANTS := setup.cfg pyproject.toml tools/requirements.txt tools/setup

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(VENV)/.setup-dev ## Create .venv with everything that development needs

$(VENV)/.setup-demo: $(WANTS)
	@tools/setup demo
	@touch $@

$(VENV)/.setup-dev: $(WANTS)
	@tools/setup dev
	@touch $@ $(VENV)/.setup-demo

.PHONY: java
java: | $(VENV)/.setup-demo ## Show which Java the broker and Spark will use
	@$(BIN)/python -m eos_sink_lab.testing.java

.PHONY: kafka
kafka: $(VENV)/.setup-demo ## Download Kafka's jars into the cache (KAFKA="4.3.0 3.9.1")
	@$(BIN)/python -m eos_sink_lab.testing.kafka_files $(KAFKA)

.PHONY: demo
demo: $(VENV)/.setup-demo ## Real flights through a real Kafka while the driver is killed
	@$(BIN)/eos-sink demo

.PHONY: test
test: $(VENV)/.setup-dev kafka ## Run the tests that every change must pass, on real Kafka and Spark
	$(BIN)/python -m pytest tests integration $(SIDE_BY_SIDE) $(PYTEST_ARGS)

.PHONY: test-unit
test-unit: $(VENV)/.setup-dev ## Run the tests that need no broker, in seconds
	$(BIN)/python -m pytest tests $(PYTEST_ARGS)

.PHONY: test-integration
test-integration: $(VENV)/.setup-dev kafka ## Run the tests on real Kafka and Spark
	$(BIN)/python -m pytest integration $(PYTEST_ARGS)

# Many of these start their own clusters, Spark sessions or installations.
.PHONY: test-long
test-long: WORKERS := 2
test-long: $(VENV)/.setup-dev kafka ## Run the slow tests, most of them on real Kafka and Spark
	$(BIN)/python -m pytest tests integration -m long $(SIDE_BY_SIDE) $(PYTEST_ARGS)

.PHONY: lint
lint: $(VENV)/.setup-dev ## Check style, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: format
format: $(VENV)/.setup-dev ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

.PHONY: coverage
coverage: $(VENV)/.setup-dev ## Measure the coverage of the tests without a broker
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest tests -q $(PYTEST_ARGS)
	$(BIN)/coverage combine
	$(BIN)/coverage report

.PHONY: docs
docs: $(VENV)/.setup-dev ## Build the documentation as a site into build/site; a broken link fails
	@$(BIN)/python -m tools.site

# PORT=9000 for another port.
.PHONY: docs-serve
docs-serve: $(VENV)/.setup-dev ## Serve it at http://localhost:8000
	@$(BIN)/python -m tools.site --serve localhost:$(or $(PORT),8000)

.PHONY: spec
spec: ## Check the model of the protocol (needs spin and gcc)
	@proof/spec/run.sh

.PHONY: spec-short
spec-short: ## Check fewer rows of the model, in under a minute
	@proof/spec/run.sh short

.PHONY: guards
guards: $(VENV)/.setup-dev kafka ## Mutate the rules of the protocol; a test must fail
	@nice $(BIN)/python -m proof.guards

# ROUNDS=3 for fewer rounds; `python -m bench.sinks --help` lists shapes and peers.
# `python -m bench.publish` writes the results into docs/performance.md.
.PHONY: bench
bench: $(VENV)/.setup-dev kafka ## Compare with Spark's own sink, with rows of 100 bytes
	@$(BIN)/python -m bench.sinks $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-full
bench-full: $(VENV)/.setup-dev kafka ## Compare with Spark's own sink and Flink, on all shapes
	@$(BIN)/python -m bench.sinks --full $(if $(ROUNDS),--rounds $(ROUNDS))

.PHONY: bench-small
bench-small: $(VENV)/.setup-dev kafka ## Measure batches with few rows; writes docs/performance.md
	@$(BIN)/python -m bench.small_batches
	@$(BIN)/python -m bench.publish targets 'small batches' sockets

.PHONY: bench-scale
bench-scale: $(VENV)/.setup-dev kafka ## Measure many tasks, queries and topics; writes docs/performance.md
	@$(BIN)/python -m bench.settle
	@$(BIN)/python -m bench.requests
	@$(BIN)/python -m bench.many
	@$(BIN)/python -m bench.publish settling requests inline many

# HOURS=1.1 for a long run, SEED=7 to repeat one, OUT=... for another directory.
.PHONY: chaos
chaos: $(VENV)/.setup-dev kafka ## Inject every fault, for minutes or HOURS=..., and write a report
	@$(BIN)/python -m proof.chaos $(if $(HOURS),--hours $(HOURS)) $(if $(SEED),--seed $(SEED)) $(if $(OUT),--out $(OUT))

# MINUTES=60; SEED=7 to repeat a run, the clock chooses the seed otherwise; KINDS='streams jobs'.
.PHONY: explore
explore: $(VENV)/.setup-dev ## Play random sequences of queries, jobs, faults and users' reactions on a Kafka in memory
	@$(BIN)/python -m tests.protocol.explorer $(if $(MINUTES),--minutes $(MINUTES)) $(if $(SEED),--seed $(SEED)) $(KINDS)

# CELL=4.2.1-3.12-3.9.1 for Spark 4.2.1, Python 3.12 and Kafka 3.9.1; it may contain a *.
.PHONY: matrix
matrix: $(VENV)/.setup-dev kafka ## Test each Spark, Python and Kafka with the installed wheel, or CELL=...
	@$(BIN)/python -m proof.matrix $(if $(CELL),--cell '$(CELL)')

# BEFORE=v1.0.0 for the build that a query is upgraded from; the last tag, else the commit before.
.PHONY: rehearse
rehearse: $(VENV)/.setup-dev kafka ## Build the release into build/dist, install it as a user does and try it
	@$(BIN)/python -m tools.rehearse build $(if $(BEFORE),--before $(BEFORE))

.PHONY: clean
clean: ## Remove files of builds and tests (not .venv)
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage .coverage.* spark-warehouse metastore_db derby.log
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

.PHONY: distclean
distclean: clean ## Remove .venv too
	rm -rf $(VENV)
