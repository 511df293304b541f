# usher: `make demo` shows it, `make test` tests it. Each does all its own set-up; what is there already is not made again.
# What is made: .venv and .venv-bench (Python), build/ (libraries, examples, logs), .build* (SwiftPM's own).

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo generate test lint format faults sanitize fuzz bench profile model simulate mutants build clean
.PHONY: packages
.SECONDARY:

PYTHON ?= python3
PARTS  ?=
QUICK  ?=
export SWIFT_BACKTRACE = enable=no
unexport USHER_LIBRARY USHER_EMBEDDED USHER_SCRATCH

python   := .venv/bin/python
shipped  := build/shipped/libusher.so
checked  := build/checked/libusher.so
sanitized := $(patsubst %,build/%/libusher.so,checked-thread checked-address shipped-thread shipped-address)
player   := build/examples/usher-player
bench    := build/bench/beats_usher
cpp      := build/examples-cpp/usher-minimal
# Folders too: their dates change when a file comes or goes.
core     := $(shell find Sources include) Package.swift scripts/build-library
examples := $(shell find examples/c examples/cpp include)
benches  := $(shell find benchmarks/c include)
bounded  := timeout --kill-after=10

help:
	@echo 'usher: DRM licences and concurrent-stream sessions (SSM) for any video player'
	@echo
	@echo '  make demo    two screens, one stream: session, licence, heartbeats, a refusal, the proof (under a minute once built)'
	@echo '  make test    every test; ends with "N passed, N failed"   (PARTS="docs examples": only those, scripts/test.py --list names them)'
	@echo '  make generate  writes what follows from the headers: table of functions, Python declarations, constants'
	@echo '  make lint    formatters and linters over every source file; `make test` does it too (FILES="Sources include": only those)'
	@echo '  make format  rewrites what `make lint` finds, where a tool can'
	@echo '  make faults  every fault of servers and networks on every operation: docs/faults.md (minutes; network namespaces are needed)'
	@echo '  make sanitize  the tests under ThreadSanitizer, AddressSanitizer and valgrind (tens of minutes; PARTS: scripts/sanitize.py --list)'
	@echo '  make fuzz    what reads outside data, and the C functions, fed by libFuzzer: 60 s each (SECONDS=300 TARGETS="hls api"), findings in build/fuzz'
	@echo '  make bench   libusher beside plain C and Python on the same server: benchmarks/RESULTS.md (tens of minutes; QUICK=1: do they run)'
	@echo '  make profile  where the instructions of a heartbeat go: benchmarks/PROFILE.md'
	@echo '  make model   the state machines through every order of events: docs/model.md, and a search (SECONDS=120)'
	@echo '  make simulate  the engine through random stories: 10,000 screens for 24 hours of virtual time (minutes; SEED=N tells one again)'
	@echo '  make mutants  bugs planted in machines and engine, which search or simulation must find, and in rules of docs/conformance.md, which their tests must'
	@echo '  make build   build/shipped/libusher.so and the examples, in build/examples'
	@echo '  make clean   removes all that was made'
	@echo
	@echo 'Needed: Swift 6.x on the PATH, and a Debian 12 (or the like) whose packages may be installed: scripts/install-packages --list.'

demo: build .venv/ready
	@$(bounded) 300 $(python) scripts/demo.py --player $(player) --library $(shipped) --python $(python)

generate:
	@$(PYTHON) scripts/generate

test: build $(checked) $(cpp) .venv/ready
	@$(python) scripts/test.py $(PARTS)

lint: .venv/ready
	@$(python) scripts/format --check $(FILES)

format: .venv/ready
	@$(python) scripts/format $(FILES)

# The page is written when every cell came out as expected.
faults: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 900 $(python) -m pytest -q --timeout 300 -p no:cacheprovider --write-page Tests/faults

# Its parts build the libraries they need, by this Makefile.
sanitize: .venv/ready
	@$(python) scripts/sanitize.py $(PARTS)

# QUICK: only whether they run, with what the tests have; what it writes is thrown away with build/.
ifeq ($(QUICK),)
bench: $(shipped) $(bench) .venv-bench/ready
	@.venv-bench/bin/python benchmarks/bench.py --programs $(dir $(bench)) --library $(shipped) --out benchmarks $(PARTS)
else
bench: $(shipped) $(bench) .venv/ready
	@$(bounded) 300 $(python) benchmarks/bench.py --programs $(dir $(bench)) --library $(shipped) --out build/bench/out --quick $(PARTS)
endif

model: packages
	@SECONDS_TO_SEARCH=$(or $(SECONDS),120) scripts/model

fuzz: packages
	@$(PYTHON) Tests/fuzz/run --seconds $(or $(SECONDS),60) $(TARGETS)

simulate: packages
	@SEED=$(SEED) HOURS=$(HOURS) SCREENS=$(SCREENS) scripts/simulate

mutants: packages .venv/ready
	@$(if $(ROWS),:,$(PYTHON) scripts/mutants $(NAMES))
	@$(if $(NAMES),:,$(PYTHON) scripts/row-mutants --python $(abspath $(python)) $(if $(ROWS),--only "$(ROWS)"))

profile: $(shipped) $(bench)
	@$(bounded) 900 $(PYTHON) benchmarks/hotpath.py --programs $(dir $(bench)) --out benchmarks/PROFILE.md

build: $(shipped) $(player)

# ---- set-up ------------------------------------------------------------------------------------------------------------------

packages:
	@scripts/install-packages

.venv/ready: bindings/python/pyproject.toml bindings/python/setup.py | packages
	@echo 'usher: making .venv'
	@$(PYTHON) -m venv --clear .venv
	@$(bounded) 900 .venv/bin/pip install --quiet --disable-pip-version-check --editable 'bindings/python[dev]'
	@touch $@

.venv-bench/ready: benchmarks/requirements.txt | packages
	@echo 'usher: making .venv-bench'
	@$(PYTHON) -m venv --clear .venv-bench
	@$(bounded) 900 .venv-bench/bin/pip install --quiet --disable-pip-version-check --requirement benchmarks/requirements.txt
	@touch $@

# A library that came out as it was keeps its date, so what is linked with it is not made again: hence the stamp beside it.
build/%/stamp: $(core) | packages
	@echo 'usher: building build/$*/libusher.so'
	@$(bounded) 1800 scripts/build-library $* $(@D)
	@touch $@

$(shipped) $(checked) $(sanitized): build/%/libusher.so: build/%/stamp ;

$(player): folder := c
$(cpp): folder := cpp
$(player) $(cpp): $(examples) $(shipped) | packages
	@echo 'usher: building examples/$(folder)'
	@mkdir -p $(@D)
	@{ cmake -S examples/$(folder) -B $(@D) -G Ninja -DUSHER_LIBRARY=$(abspath $(shipped)) -DUSHER_INCLUDE_DIR=$(abspath include) && \
	  $(bounded) 600 cmake --build $(@D); } >$(@D)/build.log 2>&1 || { cat $(@D)/build.log >&2; exit 1; }
	@touch $@

$(bench): $(benches) $(shipped) | packages
	@echo 'usher: building the benchmarks'
	@mkdir -p $(@D)
	@{ cmake -S benchmarks/c -B $(@D) -G Ninja -DUSHER_LIBRARY=$(abspath $(shipped)) -DUSHER_INCLUDE_DIR=$(abspath include) && \
	  $(bounded) 600 cmake --build $(@D); } >$(@D)/build.log 2>&1 || { cat $(@D)/build.log >&2; exit 1; }
	@touch $@

# -------------------------------------------------------------------------------------------------------------------------------

clean:
	rm -rf build .build .build-embedded .build-checked-* .build-shipped-* .venv .venv-bench .hypothesis .pytest_cache \
	  bindings/python/build bindings/python/src/usher.egg-info bindings/python/.hypothesis \
	  bindings/python/.mypy_cache bindings/python/.ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
