# make demo: a tour in a minute, offline.   make apply: the main job, from nothing to a verified environment.   make sandbox: a Workbench instance in an
# emulator of Google Cloud.   make test: all tests and checks that this
# machine can run.   make test-quick: the tests that start no program; PKG=lock for one package.   make test-long: kills at every call, long walks, more frameworks.
# Needs Python 3.11 or newer and make; everything else is put into .venv and .cache here.

ifndef PYTHON
PYTHON := $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
endif
VENV := .venv
BIN := $(VENV)/bin
CACHE := $(CURDIR)/.cache
# Bytecode is written: the tests start hundreds of programs, and a quarter of their time would go into compiling the same files.
LOCAL := mkdir -p .cache/tmp && TMPDIR="$(CACHE)/tmp" UV_CACHE_DIR="$(CACHE)/uv" PIP_CACHE_DIR="$(CACHE)/pip" HF_HOME="$(CACHE)/hf" \
	PYTHONDONTWRITEBYTECODE= XDG_DATA_HOME="$(CACHE)/share" XDG_CACHE_HOME="$(CACHE)" UV_PYTHON_DOWNLOADS=never OMP_NUM_THREADS=1
PYTEST_ARGS ?=
# Processes that share the tests: one more than cores, since tests wait for programs a sixth of their time; those of test-quick wait for nothing.
CORES := $(shell n=$$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2); [ "$$n" -le 4 ] || n=4; echo $$n)
JOBS ?= $(shell echo $$(($(CORES) + 1)))
test-quick: JOBS = $(CORES)
PYTEST = $(LOCAL) sh support/run_tests.sh $(BIN)/python -m pytest -n $(JOBS) --dist worksteal
PKG_TESTS = $(or $(strip $(wildcard tests/$(PKG)) $(shell grep -rlE "^(from|import) provision\.$(PKG)\b" tests --include="test_*.py")),\
	$(error no test imports provision.$(PKG): name a package of src/provision, as in PKG=lock))

.PHONY: demo apply sandbox test test-quick test-long test-device check structure bench bench-lock facts remake refresh docs clean

demo: $(VENV)/.installed
	@PROVISION="$(CURDIR)/$(BIN)/provision" sh examples/demo/demo.sh

apply: $(VENV)/.installed
	$(BIN)/provision apply specs/quickstart.yaml --yes

# Programs that the emulated instance needs of this machine, each with its package of Debian and Ubuntu.
NEEDED := unshare:util-linux pivot_root:util-linux mount:mount umount:mount curl:curl python3:python3

# The Workbench example in an emulator of Google's services. It works on a copy, so that the checkout stays as it is.
sandbox: $(VENV)/.installed
	@[ "$$(uname)" = Linux ] || { echo "the emulated instance needs Linux"; exit 1; }
	@for pair in $(NEEDED); do command -v "$${pair%%:*}" >/dev/null || { echo "$${pair%%:*} is missing; on Debian and Ubuntu: apt-get install $${pair#*:}"; exit 1; }; done
	$(LOCAL) $(BIN)/python -m pip install --quiet --editable '.[workbench,sandbox]'
	@mkdir -p .cache/sandbox && cp specs/workbench-l4.yaml .cache/sandbox/
	cd .cache/sandbox && "$(CURDIR)/$(BIN)/provision" apply workbench-l4.yaml --sandbox --yes

test: $(VENV)/.developed
	$(PYTEST) --durations=20 $(PYTEST_ARGS)
	$(LOCAL) $(MAKE) --no-print-directory check

test-quick: $(VENV)/.developed
	$(PYTEST) -q --quick -r fE $(PYTEST_ARGS) $(if $(PKG),$(PKG_TESTS))

test-long: $(VENV)/.developed
	$(PYTEST) --long=all -m long $(PYTEST_ARGS)

# On a machine with an NVIDIA card: docs/reference/checks-device.md. Without one it says so and fails.
test-device: $(VENV)/.developed
	REQUIRE=device $(BIN)/python -m pytest -q -x -m device tests/agent/probe/test_device.py $(PYTEST_ARGS)

check: $(VENV)/.developed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/codespell src templates specs examples docs support benchmarks README.md CONTRIBUTING.md CHANGELOG.md

# Figures of the source text with their bounds; make structure LIST=--list names each place.
structure: $(VENV)/.developed
	$(LOCAL) $(BIN)/python support/structure.py $(LIST)

bench: $(VENV)/.developed
	$(LOCAL) $(BIN)/python -m benchmarks

bench-lock: $(VENV)/.developed
	$(LOCAL) $(BIN)/python -m benchmarks lock-online lock-offline lock-check install pip-compile

# What is generated and kept under version control; a test fails when it is stale.
facts: $(VENV)/.developed
	$(BIN)/python support/compile_facts.py

# What machines can read of the facts, compared with the package index of pip's configuration: docs/reference/facts.md.
remake: $(VENV)/.developed
	$(LOCAL) sh -c 'for table in torch transformers packages cuda cuda_wheels numpy source_only releases tensorflow jax models windows vertex; do $(BIN)/python support/remake_$$table.py --check || code=1; done; $(BIN)/python support/read_training_arguments.py --check || code=1; exit $${code:-0}'

# The same tables written anew, with all that is generated from them. .cache/refresh.md lists the rows and golden findings that changed.
refresh: $(VENV)/.developed
	$(LOCAL) sh support/refresh_facts.sh $(BIN)

docs: $(VENV)/.developed
	$(BIN)/python support/render_docs.py

clean:
	rm -rf $(VENV) .cache dist

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "no Python 3.11 or newer was found; name one: make PYTHON=/path/to/python3"; exit 1; }
	$(LOCAL) "$(PYTHON)" -m venv $(VENV) || { echo "$(PYTHON) -m venv failed; on Debian and Ubuntu: apt-get install python3-venv"; rm -rf $(VENV); exit 1; }
	$(LOCAL) $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	@touch $@

$(VENV)/.installed: $(VENV)/.made pyproject.toml
	$(LOCAL) $(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(LOCAL) $(BIN)/python -m pip install --quiet --group dev
	@touch $@
