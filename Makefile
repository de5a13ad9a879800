# Everything one does with the project.  `make setup` first; the others call it by themselves.

PYTHON ?= python3
ARGS ?=
SEED ?=
SECONDS_MAX ?= 20
PYTHON_TO ?= 3.13

BIN := .venv/bin

# Tests start hundreds of processes, and none of them should compile the sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup developing environment serve test quick newer-python draw check bench bench-timer bench-purgatory bench-groups bench-client bench-spark bench-compaction bench-limits bench-events bench-schedule bench-before bench-cluster etcd cluster spark-demo dist clean

help:
	@echo "make setup    .venv with the command .venv/bin/tarry; hot modules compiled if there is a C compiler"
	@echo "make serve    a broker on 127.0.0.1:9092, data in ./tarry-data; ARGS='--set key=value'"
	@echo "make quick    every test that needs no other process, some two minutes"
	@echo "make test     all tests, in both forms of the hot modules; ARGS='tests/unit -k wheel'"
	@echo "make newer-python  tests of client and command line on Python 3.13, interpreted; PYTHON_TO=3.12"
	@echo "make draw     new examples for the tests of laws, for 20 s; SEED=7 draws the same again"
	@echo "make check    format, lint, types, layers, generated files"
	@echo "make bench    the broker's start, and its CPU beside Apache Kafka"
	@echo "make bench-timer      the timers beside Kafka's, Netty's, the JDK's, asyncio's; ARGS=--quick"
	@echo "make bench-purgatory  the purgatory beside Kafka's; ARGS=--short"
	@echo "make bench-groups     heartbeats, joins and commits of groups beside Kafka's; ARGS=--quick"
	@echo "make bench-client     our client beside confluent-kafka, aiokafka, kafka-python; ARGS=--quick"
	@echo "make bench-spark      Spark's source, sinks and archive beside its Kafka connector; ARGS=--quick"
	@echo "make bench-compaction 1 GB compacted: time, longest turn, memory"
	@echo "make bench-limits     what partitions and idle connections cost: memory, files, time to start"
	@echo "make bench-events     what the event log costs the broker; ARGS='--rounds 2'"
	@echo "make bench-schedule   scheduled records: cost, lateness, memory, starts, beside their goals; ARGS=--quick"
	@echo "make bench-before     this commit beside an earlier one, whose checkout is BEFORE=; ARGS=--instructions"
	@echo "make bench-cluster    three brokers with three replicas beside three nodes of Apache Kafka; ARGS='--rounds 1'"
	@echo "make cluster  an etcd and three brokers on 127.0.0.1:19091 to 19093, data in ./tarry-data/cluster"
	@echo "make etcd     the path of an etcd for it; Go builds one if there is none"
	@echo "make spark-demo  a day of orders through the whole pipeline, a driver killed in the middle; some minutes"
	@echo "make dist     dist/: a pure wheel, and one compiled for this Python and platform"
	@echo "make clean    remove what was built, .venv too; data stays"

setup:
	@PYTHON='$(PYTHON)' tools/setup.sh

# What tests and benchmarks need besides.
developing:
	@PYTHON='$(PYTHON)' tools/setup.sh --dev

# The same without compiling: checks of the source, tests of the interpreted form.
environment:
	@PYTHON='$(PYTHON)' tools/setup.sh --dev --interpreted

# A first start is not to take more than a minute: what is not compiled by then is so for the next.
serve:
	@PYTHON='$(PYTHON)' tools/setup.sh --patience 50
	@exec $(BIN)/tarry serve --quick-start $(ARGS)

quick: environment
	@TARRY_PURE=1 $(BIN)/pytest -n 2 -m 'not process and not slow' $(ARGS)

test: developing
	@tools/test.sh $(ARGS)

newer-python:
	@tools/another_python.sh $(PYTHON_TO) $(ARGS)

# Not part of the suite: what it finds was found by chance.
draw: environment
	@SEED='$(SEED)' SECONDS_MAX='$(SECONDS_MAX)' tools/draw.sh $(ARGS)

check: environment
	@tools/check.sh

bench: developing
	@$(BIN)/python bench/start.py
	@$(BIN)/python bench/brokers.py $(ARGS)

bench-timer:
	@PYTHON='$(PYTHON)' tools/setup.sh --dev --bench
	@$(BIN)/python bench/timer.py $(ARGS)

bench-purgatory: developing
	@$(BIN)/python bench/purgatory.py $(ARGS)

bench-groups: developing
	@$(BIN)/python bench/groups.py $(ARGS)

bench-client: developing
	@$(BIN)/python bench/client.py $(ARGS)

bench-spark: developing
	@$(BIN)/python bench/spark.py $(ARGS)

bench-compaction: developing
	@$(BIN)/python bench/compaction.py $(ARGS)

bench-limits: developing
	@$(BIN)/python bench/limits.py $(ARGS)

bench-events: developing
	@$(BIN)/python bench/events.py $(ARGS)

bench-schedule: developing
	@$(BIN)/python bench/schedule.py $(ARGS)

bench-before: developing
	@$(BIN)/python bench/before.py $(BEFORE) $(ARGS)

spark-demo: developing
	@$(BIN)/python examples/orders/demo.py $(ARGS)

bench-cluster: developing
	@$(BIN)/python bench/clusters.py $(ARGS)

# A path to an etcd that Tarry accepts; Go builds one if there is none.
etcd:
	@tools/etcd.sh

cluster:
	@PYTHON='$(PYTHON)' tools/setup.sh --cluster
	@etcd=$$(tools/etcd.sh) && exec $(BIN)/python tools/cluster.py --etcd "$$etcd" $(ARGS)

# A pure wheel, which runs everywhere, and a compiled one for this interpreter and platform.
dist: environment
	@tools/dist.sh

clean:
	@rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find src -name '*.so' -delete
	@find src -name '_compiled.*.txt' -delete
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
