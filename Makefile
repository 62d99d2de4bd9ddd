# make            sets everything up and measures the default grid
# make test       runs the tests, with real frameworks
# make help       says what else there is
CORES ?= all
TARGET ?=
PYTHON ?=

.PHONY: run test environments clean help venv

run: venv  ## set everything up, then: .venv/bin/snakemake --cores $(CORES) $(TARGET)
	@.venv/bin/snakemake --cores $(CORES) $(TARGET)

test: venv  ## run the tests
	@.venv/bin/python -m pytest

environments: venv  ## make the frameworks' environments, and measure nothing
	@.venv/bin/snakemake --cores $(CORES) environments

clean:  ## remove .venv, the frameworks' environments and caches; results and logs stay
	rm -rf .venv .environments .cache .pytest_cache .ruff_cache
	find workflow tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

help:  ## say what can be made
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile
	@echo '  CORES=16 TARGET=shi2016_table4 says how many cores and which table or figure; PYTHON=python3.12 which Python.'

venv:
	@PYTHON="$(PYTHON)" sh workflow/scripts/environments/bootstrap.sh
