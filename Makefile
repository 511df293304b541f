# usher: `make demo` shows it, `make test` tests it. Each target first builds the files that it needs and that are not
# up to date. What make builds is in .venv* (Python), build/ (libraries, examples, logs) and .build* (SwiftPM). Some
# targets also write files of the repository, for example `generate`, `format`, `faults` and `bench`.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# `make test` calls make again, with --jobs=2 and the target `built`. Only that call builds several targets at the same
# time.
ifneq ($(MAKECMDGOALS),built)
.NOTPARALLEL:
endif
.PHONY: built
.PHONY: help demo generate test lint format faults chaos floods load sanitize fuzz bench profile model simulate
.PHONY: mutants swift-release release test-release test-packages build clean
.PHONY: sequences
.PHONY: abi abi-hosts docs docs-check kills packages hosts host-packages player-packages packaging-packages debs wheels
.SECONDARY:

PYTHON ?= python3
PARTS  ?=
QUICK  ?=
KEEP   ?=
export SWIFT_BACKTRACE = enable=no
unexport USHER_LIBRARY USHER_EMBEDDED USHER_SCRATCH

# The file build/folder has the path that this folder had at the last call of make. If the folder was moved or copied
# since then, remove what was built with absolute paths: by SwiftPM and CMake, and the virtual environments.
before := $(file <build/folder)
ifneq ($(before),$(CURDIR))
ifneq ($(before),)
$(shell scripts/forget-paths "$(before)")
endif
$(shell mkdir -p build && echo '$(CURDIR)' >build/folder)
endif

python   := .venv/bin/python
shipped  := build/shipped/libusher.so
checked  := build/checked/libusher.so
sanitized := $(patsubst %,build/%/libusher.so,checked-thread checked-address shipped-thread shipped-address)
player   := build/examples/usher-player
bench    := build/bench/beats_usher
cpp      := build/examples-cpp/usher-minimal
hosts    := build/hosts/stamp
# These lists include the folders, because the date of a folder changes when a file is added to it or removed from it.
core     := $(shell find Sources include guardian) Package.swift scripts/build-library
examples := $(shell find examples/c examples/cpp include)
benches  := $(shell find benchmarks/c include)
plug-ins := $(shell find hosts -mindepth 1) $(shell find include)
bounded  := timeout --kill-after=10

help:
	@echo 'usher: DRM licences and concurrent-stream sessions (SSM) for any video player'
	@echo
	@echo '  make demo      two screens, one stream: session, licence, heartbeats, a refusal (under a minute once built)'
	@echo '                 KEEP=1: the files stay, and the head-end with its live page runs until Ctrl-C'
	@echo '  make build     build/shipped/libusher.so, the examples in build/examples, and the head-end in .venv/bin'
	@echo '  make test      the tests, except the slower ones below; ends with "N passed, N failed"'
	@echo '                 PARTS="docs examples": only these parts; scripts/test.py --list names them'
	@echo '  make lint      checks layout and style of all source files; make test does it too (FILES="Sources include")'
	@echo '  make format    lays out the source files that make lint complains about'
	@echo '  make docs      build/site: the documentation as static pages, with a reference of each language'
	@echo '  make docs-check  opens the site and the page of the head-end in Chromium: axe-core, and screenshots in build'
	@echo '  make sequences draws the pictures of docs/concepts again (NAMES="zap")'
	@echo '  make debs      build/debs: Debian packages of the commit HEAD (docs/packaging.md)'
	@echo '  make wheels    build/wheels: wheels and source distributions of the commit HEAD'
	@echo '  make release   build/release: all files of a release, with check sums (minutes; KEY=NAME signs them by GPG)'
	@echo '  make generate  writes the files made from the headers: function table, Python declarations, constants'
	@echo
	@echo 'Slower tests:'
	@echo '  make faults    every fault on every operation; writes docs/faults.md (minutes; needs network namespaces)'
	@echo '  make chaos     50 items through a bad network for 20 minutes; writes into docs/faults.md (SECONDS=60 SEED=1)'
	@echo '  make hosts     mpv, GStreamer and others with their plug-ins; writes docs/hosts.md (minutes)'
	@echo '  make floods    servers that send without end, 5 s each: how late other heartbeats are (minutes; SECONDS=20)'
	@echo '  make kills     kills hosts with a guardian at each of several hundred points; the server must hold nothing'
	@echo '  make load      10,000 playbacks, then 1,000 accounts at their limit while Redis restarts (four minutes)'
	@echo '  make swift-release  `swift build -c release`, which must work without a warning (minutes)'
	@echo '  make test-release   builds the release twice; both must have the same bytes (minutes)'
	@echo '  make test-packages  newcomers in a fresh Debian, with the built packages alone (minutes; needs root)'
	@echo '  make abi       compares the binary interface of the headers with the recorded releases (docs/abi.md)'
	@echo '  make abi-hosts a host built with these headers, with the library of the oldest recorded release (minutes)'
	@echo '  make model     every order of events in the state machines; writes docs/model.md (SECONDS=120)'
	@echo '  make simulate  the engine in random stories: 10,000 screens for 24 hours of virtual time'
	@echo '                 (minutes; SEED=N repeats one story)'
	@echo '  make mutants   plants bugs; the tests must find each (NAMES="old-token", ROWS="teardown error")'
	@echo '  make sanitize  the tests under ThreadSanitizer, AddressSanitizer and valgrind (tens of minutes)'
	@echo '                 PARTS="thread-swift": only these parts; scripts/sanitize.py --list names them'
	@echo '  make fuzz      libFuzzer on readers of outside data and on the C functions, 60 s each; findings in build/fuzz'
	@echo '                 (SECONDS=300 TARGETS="hls api")'
	@echo '  make bench     libusher, plain C and Python on the same server; writes benchmarks/RESULTS.md'
	@echo '                 (45 minutes; QUICK=1 only checks that the benchmarks run)'
	@echo '  make profile   the instructions that a heartbeat takes; writes benchmarks/PROFILE.md'
	@echo
	@echo '  make clean     removes everything that was built'
	@echo
	@echo 'You need Swift 6.x on the PATH, and Debian 12 or a similar system. The packages it installs if it may:'
	@echo 'scripts/install-packages --list.'

demo: build .venv/ready
	@$(if $(KEEP),,$(bounded) --foreground 300) $(python) scripts/demo.py --player $(player) --library $(shipped) \
	  --python $(python) $(if $(KEEP),--keep)

generate:
	@$(PYTHON) scripts/generate

# Most steps of the Swift builds use one processor core, so make builds two targets at the same time. Only one process
# may install packages, so make installs them before it starts the builds.
test: packages packaging-packages
	@$(MAKE) --no-print-directory --jobs=2 built
	@$(python) scripts/test.py $(PARTS)

built: $(shipped) $(checked) $(player) .venv/ready $(cpp) $(hosts)

lint: .venv/ready
	@$(python) scripts/format --check $(FILES)

format: .venv/ready
	@$(python) scripts/format $(FILES)

# Draws the pictures of docs/concepts.
sequences: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 120 $(python) scripts/draw-sequence $(NAMES)

docs: $(shipped) .venv-docs/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 900 .venv-docs/bin/python scripts/site

# Checks the finished site and the page of the head-end in Chromium with axe-core, and takes screenshots into
# build/site-check and build/page-check.
docs-check: docs .venv-docs/check | player-packages
	@$(bounded) 1800 .venv-docs/bin/python scripts/site-check
	@$(bounded) 600 .venv-docs/bin/python bindings/python/tests/headend/browser_check.py --axe \
	  --pictures build/page-check

# Writes docs/faults.md if every cell of the table has its expected outcome.
faults: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 900 $(python) -m pytest -q --timeout 300 -p no:cacheprovider \
	  --write-page Tests/faults

# Writes docs/hosts.md if every test passes.
hosts: player-packages $(hosts) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 3600 $(python) -m pytest -q --timeout 300 -p no:cacheprovider \
	  --write-page Tests/hosts

# Writes the last section of docs/faults.md if every goal is met.
chaos: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(python) scripts/chaos --seconds $(or $(SECONDS),1200) --seed $(or $(SEED),1) \
	  $(if $(SECONDS),,--write-page)

# Redis and the head-end run on free ports of loopback.
load: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 900 $(python) scripts/load.py --html build/load.html

floods: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 3600 $(python) -m pytest -q -s --timeout 300 -p no:cacheprovider \
	  Tests/floods --flood-seconds $(or $(SECONDS),5)

kills: $(shipped) $(checked) .venv/ready
	@for library in $(shipped) $(checked); do USHER_LIBRARY=$(CURDIR)/$$library $(bounded) 3600 $(python) -m pytest -q \
	  -s --timeout 300 -p no:cacheprovider --all-kills Tests/guardian || exit 1; done

# The parts of sanitize.py call this Makefile to build the libraries that they need.
sanitize: .venv/ready
	@$(python) scripts/sanitize.py $(PARTS)

# With QUICK=1, `make bench` only checks that the benchmarks run. Then it needs only the tools of the tests, and writes
# only below build/.
ifeq ($(QUICK),)
bench: $(shipped) $(bench) .venv-bench/ready
	@.venv-bench/bin/python benchmarks/bench.py --programs $(dir $(bench)) --library $(shipped) \
	  --out benchmarks $(PARTS)
else
bench: $(shipped) $(bench) .venv/ready
	@$(bounded) 480 $(python) benchmarks/bench.py --programs $(dir $(bench)) --library $(shipped) \
	  --out build/bench/out --quick $(PARTS)
endif

model: packages
	@SECONDS_TO_SEARCH=$(or $(SECONDS),120) scripts/model

abi: packages
	@$(PYTHON) scripts/abi

abi-hosts: $(shipped) .venv/ready
	@USHER_LIBRARY=$(abspath $(shipped)) $(bounded) 3600 $(python) -m pytest -q --timeout 3000 -p no:cacheprovider \
	  Tests/abi/old_libraries.py

# This build uses a separate folder, so that SwiftPM compiles everything and repeats every warning.
swift-release: packages
	@mkdir -p build && rm -rf .build-release
	@swift build -c release --scratch-path .build-release >build/release.log 2>&1 || { cat build/release.log; exit 1; }
	@! grep -E '^/.*(warning|error): ' build/release.log
	@echo 'swift build -c release: no warning'

release: packaging-packages .venv-release/ready
	@scripts/build-release $(if $(KEY),--key $(KEY))

# Builds the release twice, which takes minutes.
test-release: packaging-packages .venv-release/ready
	@$(bounded) 3600 .venv-release/bin/python Tests/packages/release.py

# Tests the built packages in fresh Debian root folders, which contain nothing else of this project.
test-packages: debs wheels
	@$(bounded) 300 Tests/packages/recipes $(shipped)
	@$(bounded) 3600 $(PYTHON) Tests/packages/newcomers.py

wheels: .venv-release/ready $(shipped)
	@scripts/build-wheels --prebuilt $(dir $(shipped))

debs: packaging-packages $(shipped)
	@scripts/build-debs --prebuilt $(dir $(shipped))

fuzz: packages
	@$(PYTHON) Tests/fuzz/run --seconds $(or $(SECONDS),60) $(TARGETS)

simulate: packages
	@SEED=$(SEED) HOURS=$(HOURS) SCREENS=$(SCREENS) scripts/simulate

mutants: packages .venv/ready
	@$(if $(ROWS),:,$(PYTHON) scripts/mutants $(NAMES))
	@$(if $(NAMES),:,$(PYTHON) scripts/row-mutants --python $(abspath $(python)) $(if $(ROWS),--only "$(ROWS)"))

profile: $(shipped) $(bench)
	@$(bounded) 900 $(PYTHON) benchmarks/hotpath.py --programs $(dir $(bench)) --out benchmarks/PROFILE.md

build: $(shipped) $(player) .venv/ready

# ---- set-up ----------------------------------------------------------------------------------------------------------

packages:
	@scripts/install-packages

host-packages:
	@scripts/install-packages hosts

player-packages:
	@scripts/install-packages players

# The list `packaging` includes the packages of `host-packages`.
packaging-packages:
	@scripts/install-packages packaging

.venv/ready: bindings/python/pyproject.toml bindings/python/setup.py bindings/pytest/pyproject.toml | packages
	@echo 'usher: making .venv'
	@$(PYTHON) -m venv --clear .venv
	@$(bounded) 900 .venv/bin/pip install --quiet --disable-pip-version-check --editable 'bindings/python[dev]' \
	  --editable bindings/pytest
	@touch $@

.venv-bench/ready: benchmarks/requirements.txt | packages
	@echo 'usher: making .venv-bench'
	@$(PYTHON) -m venv --clear .venv-bench
	@$(bounded) 900 .venv-bench/bin/pip install --quiet --disable-pip-version-check \
	  --requirement benchmarks/requirements.txt
	@touch $@

.venv-release/ready: packaging/requirements.txt | packages
	@echo 'usher: making .venv-release'
	@$(PYTHON) -m venv --clear .venv-release
	@$(bounded) 900 .venv-release/bin/pip install --quiet --disable-pip-version-check \
	  --requirement packaging/requirements.txt
	@touch $@

.venv-docs/ready: docs/site/requirements.txt bindings/python/pyproject.toml | packages
	@echo 'usher: making .venv-docs'
	@$(PYTHON) -m venv --clear .venv-docs
	@$(bounded) 900 .venv-docs/bin/pip install --quiet --disable-pip-version-check \
	  --requirement docs/site/requirements.txt --editable 'bindings/python[headend]'
	@touch $@

.venv-docs/check: docs/site/check.txt .venv-docs/ready
	@$(bounded) 900 .venv-docs/bin/pip install --quiet --disable-pip-version-check --requirement docs/site/check.txt
	@touch $@

# If a build does not change the library, the library keeps its date, so that make does not link its dependants again.
# The stamp file beside it records that the build ran.
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
	@{ cmake -S examples/$(folder) -B $(@D) -G Ninja -DUSHER_LIBRARY=$(abspath $(shipped)) \
	  -DUSHER_INCLUDE_DIR=$(abspath include) && \
	  $(bounded) 600 cmake --build $(@D); } >$(@D)/build.log 2>&1 || { cat $(@D)/build.log >&2; exit 1; }
	@touch $@

$(hosts): $(plug-ins) $(shipped) | host-packages
	@echo 'usher: building hosts'
	@mkdir -p $(@D)
	@{ cmake -S hosts -B $(@D) -G Ninja -DUSHER_LIBRARY=$(abspath $(shipped)) \
	  -DUSHER_INCLUDE_DIR=$(abspath include) && \
	  $(bounded) 600 cmake --build $(@D); } >$(@D)/build.log 2>&1 || { cat $(@D)/build.log >&2; exit 1; }
	@touch $@

$(bench): $(benches) $(shipped) | packages
	@echo 'usher: building the benchmarks'
	@mkdir -p $(@D)
	@{ cmake -S benchmarks/c -B $(@D) -G Ninja -DUSHER_LIBRARY=$(abspath $(shipped)) \
	  -DUSHER_INCLUDE_DIR=$(abspath include) && \
	  $(bounded) 600 cmake --build $(@D); } >$(@D)/build.log 2>&1 || { cat $(@D)/build.log >&2; exit 1; }
	@touch $@

# ----------------------------------------------------------------------------------------------------------------------

clean:
	rm -rf build .build .build-release
	rm -rf .build-embedded .build-checked-* .build-shipped-* .venv .venv-bench .venv-docs .venv-release .hypothesis \
	  .pytest_cache \
	  bindings/python/build bindings/python/src/libusher.egg-info bindings/python/.hypothesis \
	  bindings/pytest/build bindings/pytest/src/pytest_usher.egg-info \
	  bindings/python/.mypy_cache bindings/python/.ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
