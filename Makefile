# The verbs of freshlane. `make run` and `make test` work on a fresh machine with Python 3.11+ and nothing else.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
TOOLS := .venv/.tools-installed

.PHONY: install run test outside check bench docs clean

install: $(TOOLS)

# What it takes to run; what developing takes is as much again, and nobody who only wants to run it should wait for that.
$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(TOOLS): $(STAMP)
	$(BIN)/python -m pip install --quiet --group dev
	touch $@

run: $(STAMP)
	$(BIN)/freshlane run -c lanes.yaml

# Most tests wait for real processes, so several run at once; those with the real model, and the soak, want the machine
# alone. The soak measures memory and lag, so it runs as in life, and says each ten seconds how far it is.
test: $(TOOLS)
	PYTHONASYNCIODEBUG=1 $(BIN)/python -m pytest -m 'not model and not soak and not outside' -n 3 --dist loadgroup
	PYTHONASYNCIODEBUG=1 $(BIN)/python -m pytest -m model
	$(BIN)/python -m pytest -m soak -s

# Clients and installers as people have them: litellm, uv, pipx.
outside: $(TOOLS)
	$(BIN)/python -m pip install --quiet --group outside
	$(BIN)/python -m pytest -m outside tests/clients tests/packaging

check: $(TOOLS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(TOOLS)
	$(BIN)/python bench/proxy.py --json bench/results/proxy.json
	$(BIN)/python bench/idle.py --json bench/results/idle.json
	$(BIN)/python bench/engine.py --quick --json bench/results/engine.json

docs: $(TOOLS)
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv build dist
