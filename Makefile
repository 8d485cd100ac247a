# Everything runs inside .venv, which is created on first use. `make help` lists the targets.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check

# One thread for each test worker: more would compete for the same cores. On a larger machine: make test TEST_WORKERS=8
TEST_WORKERS ?= 2
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast test-without-data test-oldest robustness package audit lint type bench bench-quick bench-more docs reproduce clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

demo: .venv/.ready ## Learn kernels for three small data sets and show the results
	@$(BIN)/kernelwright demo

test: .venv/.ready ## Run the tests and the docstring examples
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal

test-fast: .venv/.ready ## Run all but the slow tests, in less than three minutes
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(TEST_WORKERS) --dist worksteal -m "not slow"

test-without-data: .venv/.ready ## Check that tests that need data sets are skipped if there are none
	env -u KERNELWRIGHT_DATA $(ONE_THREAD) $(BIN)/python -m pytest -m data tests

test-oldest: .venv-oldest/.ready ## Run the tests with the oldest supported versions of all dependencies
	$(ONE_THREAD) .venv-oldest/bin/python -m pytest -n $(TEST_WORKERS) --dist worksteal -m "not slow" tests \
	    --ignore=tests/docs --ignore=tests/examples --ignore=tests/robustness

robustness: .venv/.robustness ## Run the robustness tests and count failures (about two hours; docs/reliability.md)
	$(ONE_THREAD) $(BIN)/python -m robustness.run
	$(BIN)/python -m docs.tables

package: .venv/.ready ## Build the packages and install them into an empty environment
	$(ONE_THREAD) $(BIN)/python -m robustness.run supply

audit: .venv/.ready ## Look for known vulnerabilities in the installed packages
	$(BIN)/python -m robustness.audit

lint: .venv/.ready ## Check style, formatting, the direction of imports, names and sizes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tools.layout

type: .venv/.ready ## Check the types
	$(BIN)/mypy

bench: .venv/.ready .venv-peers/.ready ## Compare with other methods, time the parts, update the page (almost an hour; resumes if killed)
	$(BIN)/python -m benchmarks.run suite scaling numbers tables figures
	$(BIN)/python -m benchmarks.run micro startup --record
	$(BIN)/python -m docs.tables

bench-quick: .venv/.ready .venv-peers/.ready ## Do the same on four small data sets (minutes), into separate files
	$(BIN)/python -m benchmarks.run --quick suite scaling numbers tables figures micro startup

bench-more: .venv/.bench .venv-peers/.ready ## Run all other benchmarks: the tables in benchmarks/results (many hours; numbers and tables resume)
	$(BIN)/python -m benchmarks.run floor head default fits large goals hyper probabilities cluster
	$(BIN)/python -m benchmarks.run numbers tables --all
	$(BIN)/python -m docs.tables

docs: .venv/.docs ## Build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

reproduce: .venv/.ready ## Recompute the papers' tables and figures (hours; resumes if killed)
	@$(BIN)/kernelwright reproduce all --output docs/reproduction
	@$(BIN)/python -m docs.tables

clean: ## Remove .venv, build output and caches
	rm -rf .venv .venv-oldest .venv-peers build dist site
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache catboost_info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	    echo "kernelwright needs Python 3.11 or newer, and '$(PYTHON)' is not: try 'make PYTHON=python3.11 ...'." >&2; \
	    exit 2; }
	@echo "Setting up .venv (a few minutes the first time)"
	@$(PYTHON) -m venv .venv
	@$(PIP) --upgrade pip
	@$(PIP) -c constraints.txt -e ".[dev]"
	@touch $@

.venv-oldest/.ready: pyproject.toml constraints-oldest.txt
	@echo "Setting up .venv-oldest"
	@$(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/python -m pip install --quiet --quiet --disable-pip-version-check -c constraints-oldest.txt \
	    -e ".[parquet,conformal,cluster]" pytest pytest-xdist hypothesis pexpect polars
	@touch $@

# Bad input is also passed to GPyTorch, to compare its errors.
.venv/.robustness: .venv/.ready
	@$(PIP) -c constraints.txt gpytorch==1.15
	@touch $@

.venv/.bench: .venv/.ready
	@echo "Adding the rival methods to .venv"
	@$(PIP) -c constraints.txt -e ".[bench]"
	@touch $@

# The suite's other methods have many large dependencies, which must not affect the versions used for development.
.venv-peers/.ready: .venv/.ready benchmarks/peers.txt
	@echo "Setting up .venv-peers with the other methods"
	@$(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install --quiet --quiet --disable-pip-version-check \
	    -c constraints.txt -e . -r benchmarks/peers.txt
	@touch $@

.venv/.docs: .venv/.ready
	@echo "Adding the documentation tools to .venv"
	@$(PIP) -c constraints.txt -e ".[docs]"
	@touch $@
