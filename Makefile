# How many seconds `make demo` and `make stack` run; empty: until Ctrl-C. Of `make fuzz`: for each.
# Of `make soak`: empty is two hours.
SECONDS ?=
# Faults that `make test-faults` plays; empty: all of them.
FAULTS ?=
# The suite of Debian whose kernel `make test-kernels` boots; empty: all. RECORD: keep the results.
SUITE ?=
RECORD ?=
# The experiment that `make experiments` runs; empty: all. QUICK, PLAN, AFRESH, PAGES: anything is yes.
ONLY ?=
QUICK ?=
PLAN ?=
PAGES ?=
AFRESH ?=
# How many minutes it may take.
WITHIN ?= 60
# What builds the image: docker, podman or buildah.
BUILDER ?= docker

python := .venv/bin/python
# A process for each processor; the tests of one file share what they prepare. Where one of these
# processes dies the run ends: another one in its place may wait for tests that never come.
side_by_side := --numprocesses=auto --dist=loadfile --max-worker-restart=0
tests := PYTHONPATH=agent:tests
version = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' agent/gilscope/__init__.py)
c_files = $(shell find agent/native probes tests -name '*.[ch]')

.PHONY: help setup setup-run interpreters interpreter-lto demo stack test test-interpreters test-faults test-kernels test-real soak unit check check-manifests check-receivers format \
    abi programs wheel deb test-install image image-with-bcc fuzz bench bench-runtimes bench-locks bench-stm bench-captures bench-requests bench-fleet bench-workers experiments docs clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## Install what is missing: packages, kernel headers, .venv
	@deploy/setup/install.sh

setup-run: ## Install what is missing of that to run gilscope, and nothing for its tests
	@deploy/setup/install.sh run

interpreters: setup ## Fetch the interpreters that the live tests trace
	@$(tests) $(python) -m support.interpreters.known fetch

interpreter-lto: ## Build a free-threaded Python with LTO for `make test-interpreters` (minutes)
	@deploy/setup/install.sh libffi-dev xz-utils
	@$(tests) $(python) -m support.interpreters.known build --again

demo: setup-run ## Trace a program with a GIL convoy and show the report
	@$(python) deploy/demo.py $(if $(SECONDS),--seconds $(SECONDS))

stack: setup ## Watch that program with Prometheus and Alertmanager until an alert fires
	@$(python) deploy/stack.py $(if $(SECONDS),--seconds $(SECONDS))

test: interpreters check ## Run the checks and every test (as root: the live ones too)
	@deploy/setup/install.sh containers
	@$(tests) nice $(python) -m support.containers.images & image=$$!; \
	    $(python) -m pytest -m "not live or beside_others" $(side_by_side); first=$$?; \
	    wait $$image; \
	    $(python) -m pytest -m "live and not beside_others" && exit $$first

test-interpreters: interpreters ## Trace every build of every Python, not only the telling ones (as root)
	@GILSCOPE_ALL_INTERPRETERS=1 $(python) -m pytest -m live tests/accuracy tests/live

test-faults: interpreters ## Play every fault of the matrix, or those in FAULTS (as root: an hour)
	@nice $(python) tests/faults/run.py $(FAULTS)

test-kernels: interpreters programs ## Boot Debian's kernels, or SUITE's, emulated, and trace on each (as root: ten minutes)
	@deploy/setup/install.sh kernels
	@nice $(python) tests/kernels/run.py $(if $(SUITE),--suite $(SUITE)) $(if $(RECORD),--record)

test-real: interpreters ## Trace every real program of tests/real, not only three (as root)
	@deploy/setup/install.sh real
	@GILSCOPE_ALL_PROGRAMS=1 $(python) -m pytest -v tests/real

soak: interpreters ## Run one agent under load for two hours, or for SECONDS, and see whether it grows (as root)
	@nice $(python) tests/faults/soak.py $(if $(SECONDS),--seconds $(SECONDS))

unit: setup ## Run the tests that need no root and no network
	@$(python) -m pytest tests/unit tests/client tests/benchmarks tests/deploy/dashboards tests/fuzz tests/packaging $(side_by_side)

check: setup ## Run the linters, the formatters and the type checker
	@$(python) -m ruff check
	@$(python) -m ruff format --check
	@$(python) -m mypy
	@$(if $(c_files),.venv/bin/clang-format --dry-run -Werror $(c_files))
	@.venv/bin/codespell

check-manifests: setup ## Hold manifests and chart against Helm and a real kube-apiserver (Go)
	@deploy/setup/manifest_tools.sh
	@$(python) -m pytest tests/deploy/manifests

check-receivers: setup ## Send to a real OpenTelemetry Collector and a real Pyroscope (Go; as root)
	@deploy/setup/receivers.sh
	@$(python) -m pytest tests/receivers

format: setup ## Let the formatters have their way
	@$(python) -m ruff format
	@$(if $(c_files),.venv/bin/clang-format -i $(c_files))

wheel: programs ## Build a wheel that brings the probes compiled, into dist (as root)
	@$(python) -m build --no-isolation --wheel

deb: wheel ## Build a Debian package of that wheel, into dist (as root)
	@deploy/setup/install.sh packages
	@deploy/debian/build.sh dist/gilscope-$(version)-*.whl
	@lintian --allow-root --fail-on error,warning dist/gilscope_$(version)-*.deb

test-install: deb ## Install what is released into bare systems, record there, remove it again (as root)
	@deploy/setup/install.sh containers
	@$(python) -m pytest -v -rP tests/install

image: programs ## Build the container image gilscope:VERSION with BUILDER (default: docker; as root)
	@$(BUILDER) build --tag gilscope:$(version) .

image-with-bcc: programs ## Build gilscope:VERSION-with-bcc, which can compile other probes (as root)
	@$(BUILDER) build --target with-bcc --tag gilscope:$(version)-with-bcc .

fuzz: setup ## Search for input that breaks the readers, for SECONDS each (default: 60)
	@for program in tests/fuzz/[!t]*.py; do \
	    echo "$$program"; \
	    $(tests) nice $(python) $$program $(if $(SECONDS),--seconds $(SECONDS)) || exit 1; \
	done

bench: programs ## Measure what tracing costs, write docs/overhead.md and print its table of bars
	@deploy/setup/install.sh bpftrace
	@$(python) bench/overhead.py

bench-runtimes: interpreters ## Measure what tracing costs older Pythons and PyPy, write docs/overhead-runtimes.md
	@$(python) bench/runtimes.py

bench-locks: interpreters ## Measure what tracing locks costs, write docs/overhead-locks.md (as root)
	@deploy/setup/install.sh bpftrace
	@$(python) bench/locks.py

bench-stm: setup ## Measure how fast STM logs are read, and followed
	@$(python) bench/stm.py
	@$(python) bench/stm_follow.py

bench-captures: setup ## Measure how soon a long hold is captured, and what looking out costs
	@PYTHONPATH=agent $(python) bench/captures.py

bench-requests: interpreters ## Measure what it costs to tell a request its waits (as root)
	@PYTHONPATH=agent $(python) bench/traces.py
	@PYTHONPATH=agent $(python) bench/region.py

bench-fleet: setup ## Measure what 1,000 agents are to one Prometheus, write docs/fleet.md (as root)
	@PYTHONPATH=agent $(python) bench/fleet.py

bench-workers: setup ## Measure one agent with 1,000 workers of a server, write docs/workers.md (as root)
	@PYTHONPATH=agent $(python) bench/workers.py

experiments: setup ## Run the experiments of the sources again, or ONLY one; QUICK=1, PLAN=1, AFRESH=1, WITHIN=minutes
	@$(tests):. $(python) -m bench.experiments --within $(WITHIN) $(if $(ONLY),--only $(ONLY)) \
	    $(if $(QUICK),--quick) $(if $(PLAN),--plan) $(if $(PAGES),--pages) $(if $(AFRESH),--afresh)

programs: setup ## Compile the probes ahead, for all machines, into the package and so into wheels (as root)
	@PYTHONPATH=agent $(python) probes/compile_ahead.py

abi: setup ## Make the headers of the probes again that say what user space is told
	@PYTHONPATH=agent $(python) probes/write_headers.py

docs: setup ## Make the pages again that are made from code
	@$(python) -m gilscope.reports.metric_table >docs/metrics.md
	@$(python) -m dashboards.generator
	@$(python) docs/man/make.py
	@$(python) tests/kernels/run.py --page
	@$(python) deploy/completions/make.py

clean: ## Remove everything that the other targets made in this checkout
	@umount --lazy .cache/containers/overlay 2>/dev/null || true
	rm -rf .venv .cache build dist agent/gilscope/bpf/ahead agent/gilscope/*/_*.so agent/gilscope/*/*/_*.so agent/gilscope/bpf/uprobes/_keeper
