# Each target does its own set-up: a virtual environment in .venv, installed once and
# again only when pyproject.toml or constraints.txt change.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ENGINES := $(VENV)/.engines
WORKERS ?= auto
# Tests start many interpreters, each of which would compile all sources again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test engines check format bench clean

help:
	@echo "make demo    see five labelled anomalies improve a detector on real data (pictures in demo/)"
	@echo "make test    run the whole test suite, one worker per processor (or WORKERS=2)"
	@echo "make engines test on Ray, Spark (which needs Java), MLflow and S3; installs them"
	@echo "make check   run ruff and mypy"
	@echo "make format  format the sources with ruff"
	@echo "make bench   measure the speed of stacked training and of scoring, as ratios"
	@echo "make clean   remove the virtual environment and everything these targets made"

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "aloof needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY)
	@$(BIN)/aloof demo --out demo

test: $(READY)
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 8 --dist worksteal

$(ENGINES): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mlflow,ray,spark]' 'moto[s3]>=5' flask flask-cors s3fs
	@touch $(ENGINES)

engines: $(ENGINES)
	ALOOF_ENGINES=1 $(BIN)/python -m pytest -n 0 tests/test_mlflow.py tests/test_ray.py tests/test_spark.py tests/models/table/test_s3.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	$(BIN)/python benchmarks/ensembles.py
	$(BIN)/python benchmarks/scoring.py

clean:
	rm -rf $(VENV) demo .pytest_cache .mypy_cache .ruff_cache
