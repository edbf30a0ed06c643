PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup fmt check test bench parity

setup:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --require-hashes -r requirements.lock
	$(BIN)/pip install --no-deps --no-build-isolation -e .

fmt:
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

check:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

test:
	$(BIN)/pytest

bench:
	$(BIN)/python -m benchmarks.frame
	$(BIN)/python -m benchmarks.codec
	$(BIN)/python -m benchmarks.speech --tokenizer tests/golden/checkpoints/nano_c/tokenizer.model
	$(BIN)/python -m benchmarks.busy
	$(BIN)/python -m benchmarks.delay_step
	$(BIN)/python -m benchmarks.batching --tokenizer tests/golden/checkpoints/nano_c/tokenizer.model

parity:
	$(BIN)/mosstalk parity all --model sprout
