"""Faults: what Spark tells of a query that ended, as a sentence."""

from __future__ import annotations

import pytest

from tarry.client import ClientError
from tarry.spark.archive.manifest import ArchiveRefused
from tarry.spark.pipeline.faults import fault_of
from tarry.spark.reading.loss import GO_ON

FAILED = "[STREAM_FAILED] Query [id = 5d, runId = 7f] terminated with exception: "
IN_PYTHON = "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed to read: Traceback:\n  File"


class Py4JError(Exception):
    """Error of the bridge to Java, known by its name."""


class Py4JNetworkError(Py4JError):
    """Error of its connection."""


CASES = [
    (
        f"{FAILED}{IN_PYTHON}\ntarry.spark.reading.loss.DataLost: these are gone: a [0]\n SQLSTATE",
        "these are gone: a [0].",
        True,
    ),
    (
        f"{FAILED}Job\ntarry.spark.writing.plan.SinkInterrupted: it came no further\n  at x",
        "it came no further.",
        False,
    ),
    (
        f"{FAILED}[TASK_WRITE_FAILED] Task failed. SQLSTATE: 58030\njava.io.IOException: x\n\tat y",
        "x.",
        False,
    ),
    (
        f"{FAILED}[UNRESOLVED.X] no column. SQLSTATE: 42\nmore",
        "no column.",
        False,
    ),
    (
        "java.io.IOException: No space left on device",
        "No space left on device. Make room; the next start goes on where it stopped.",
        False,
    ),
    (
        f"{FAILED}[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.",
        "another driver runs it on this checkpoint: end one of the two.",
        True,
    ),
    (
        f"{FAILED}[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match.",
        "the state in its checkpoint was written by another version of Tarry, or for other "
        "columns: go on with what wrote it, or name another checkpoint in the file.",
        True,
    ),
    (
        "An error occurred while calling o59.start.\n: org.apache.hadoop.fs.FSError: "
        "java.io.IOException: No space left on device\n\tat org.apache.hadoop.fs.x",
        "No space left on device. Make room; the next start goes on where it stopped.",
        False,
    ),
    (
        "An error occurred while calling o41.start.\n: org.apache.spark.ClassNotFoundException: "
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: tarry. SQLSTATE: 42K02\n\tat x",
        "Spark's Python has not found the format tarry: the machine is too busy, or the Python "
        "that PYSPARK_PYTHON names has no Tarry.",
        False,
    ),
    (
        f"{FAILED}Job aborted.\njava.io.IOException\n\tCaused by: No space left on device\n\tat x",
        "Job aborted. No space left on device. Make room; the next start goes on where it stopped.",
        False,
    ),
    (
        f"{FAILED}{IN_PYTHON}\ntarry.spark.reading.loss.DataLost: a [0] is gone. {GO_ON}\n at x",
        "a [0] is gone. Start the run once with --skip-lost to go on with what is there.",
        True,
    ),
    (
        f"{FAILED}Python worker failed to connect back.\n\tat org.apache.spark.x",
        "Spark gave up on a Python process that did not start in 10 s: the machine is too busy.",
        False,
    ),
    (
        f"{FAILED}Job\ntarry.client.errors.CorruptRecords: a [3] cannot be read at offset 156: no "
        "CRC; to go on behind what is damaged, seek('a', 3, 157)\n\tat x",
        "a [3] cannot be read at offset 156: no CRC. Bring the log back from a replica or a copy; "
        "or give up all before offset 157 by `tarry topics delete-records a -p 3 --before 157`, "
        "and start the run once with --skip-lost.",
        False,
    ),
    (
        f"{FAILED}Job\nOSError: [Errno 28] No space left on device\n\tat x",
        "No space left on device. Make room; the next start goes on where it stopped.",
        False,
    ),
    (
        f"{FAILED} SQLSTATE: XXKST\n=== Streaming Query ===",
        "Spark tells no reason: a process of it was killed, or ran out of memory.",
        False,
    ),
    (
        f"{FAILED}null SQLSTATE: XXKST",
        "Spark tells no reason: a process of it was killed, or ran out of memory.",
        False,
    ),
    ("", "RuntimeError.", False),
    # --- The sink's advice, for whom the pipeline file is
    (
        f"{FAILED}{IN_PYTHON}\ntarry.spark.writing.plan.SinkRefused: the sink's directory "
        f"x belongs "
        "to query a, and this is query b: give this query a sinkLocation of its own\n at x",
        "the sink's directory x belongs to query a, and this is query b: name another checkpoint "
        "in the file.",
        True,
    ),
    (
        f"{FAILED}{IN_PYTHON}\ntarry.spark.writing.plan.SinkRefused: topic 'a' was "
        f"deleted and made "
        "anew: begin a query with a checkpoint of its own\n at x",
        "topic 'a' was deleted and made anew: name another checkpoint in the file.",
        True,
    ),
    (
        f"{FAILED}Job\ntarry.spark.writing.plan.SinkInterrupted: x cannot be written: No "
        f"space left "
        "on device. Advice: make room and start the query again; it goes on where it stopped\n",
        "x cannot be written: No space left on device. Advice: make room and start the run again; "
        "it goes on where it stopped.",
        False,
    ),
    (
        f"{FAILED}Job\ntarry.spark.writing.plan.SinkRefused: a row for topic 'a' has no "
        f"key, and the "
        "topic is compacted (cleanup.policy): fill the column key\n at x",
        "a row for topic 'a' has no key, and the topic is compacted (cleanup.policy): let records "
        "have keys where they are sent, or take compact out of the topic's cleanup.policy.",
        True,
    ),
    # --- Spark and its workers
    (
        "An error occurred while calling o9.start.\n: java.lang.IllegalStateException: Cannot call "
        "methods on a stopped SparkContext.\nThis stopped SparkContext was created at:\n\n\tat x",
        "Spark has ended under it: its master or its Java is gone, or somebody ended the "
        "application. Start the run again when Spark is there.",
        True,
    ),
    (
        f"{FAILED}[SPARK_JOB_CANCELLED] Job 3 cancelled because SparkContext was shut down",
        "Spark has ended under it: its master or its Java is gone, or somebody ended the "
        "application. Start the run again when Spark is there.",
        True,
    ),
    (
        f"{FAILED}[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful",
        "the file has got or lost a step that keeps state since its checkpoint was made, or the "
        "state was deleted: write what the file had, bring the state back, or name another "
        "checkpoint in the file.",
        True,
    ),
    (
        f'{FAILED}Job aborted\njava.io.IOException: Cannot run program "/opt/py": error=2, No such '
        "file or directory\n\tat x",
        "a worker of Spark has no program /opt/py: set PYSPARK_PYTHON to a Python that "
        "every worker "
        "has at the same path, with the same Tarry.",
        True,
    ),
    (
        f'{FAILED}Job aborted\njava.io.IOException: Cannot run program "/opt/py": Exec failed, '
        "error: 13 (Permission denied)\n\tat x",
        "a worker of Spark has no program /opt/py: set PYSPARK_PYTHON to a Python that "
        "every worker "
        "has at the same path, with the same Tarry.",
        True,
    ),
    (
        f'{FAILED}Job aborted\njava.io.IOException: Cannot run program "/opt/py": error=12, Cannot '
        "allocate memory\n\tat x",
        'Cannot run program "/opt/py": error=12, Cannot allocate memory.',
        False,
    ),
    (
        f"{FAILED}Job\npyspark.errors.exceptions.base.PySparkRuntimeError: "
        f"[PYTHON_VERSION_MISMATCH] "
        "Python in worker has different version: 3.10 than that in driver: 3.12, PySpark cannot",
        "Spark's workers run Python 3.10, and this is Python 3.12: set PYSPARK_PYTHON to a Python "
        "3.12 that every worker has at the same path, with the same Tarry.",
        True,
    ),
    (
        f"{FAILED}Job\nTraceback\nModuleNotFoundError: No module named 'tarry'\n\tat x",
        "a Python of Spark's workers has no module tarry: install there what this Python has, or "
        "set PYSPARK_PYTHON to one that has it at the same path on every worker.",
        True,
    ),
    (
        f"{FAILED}Job\nAttributeError: Can't get attribute 'TaskReader' on <module "
        "'tarry.spark.reading.tasks' from '/x/tasks.py'>\n\tat x",
        "Spark's workers have another version of Tarry than this Python: install the same one on "
        "every worker.",
        True,
    ),
    (
        f"{FAILED}Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, "
        f"most recent "
        "failure: Lost task 0.3 in stage 3.0 (TID 9) (10.0.0.1 executor 3): ExecutorLostFailure "
        "(executor 3 exited caused by one of the running tasks) Reason: Command exited with code "
        "137.\nDriver stacktrace:\n\tat x",
        "Spark lost the processes that did the work, at last executor 3 (Command exited with code "
        "137): see that its workers run, and have memory enough.",
        False,
    ),
]


@pytest.mark.parametrize(("told", "sentence", "is_hopeless"), CASES)
def test_what_spark_tells_becomes_a_sentence(told, sentence, is_hopeless):
    assert fault_of(RuntimeError(told)) == (sentence, is_hopeless)


def test_errors_of_this_process_are_known_by_their_class():
    assert fault_of(ArchiveRefused("lake is laid out by day")) == ("lake is laid out by day.", True)
    assert fault_of(ClientError("no broker answers")) == ("no broker answers.", False)
    assert fault_of(Py4JNetworkError("Answer from Java side is empty")).is_hopeless
    assert fault_of(Py4JError("An error occurred while calling o375.isActive")).is_hopeless
    assert not fault_of(Py4JError("An error occurred while calling o1.x. Trace:\nno")).is_hopeless


class SparksError(Exception):
    """Error of Spark, which keeps what caused it by itself."""

    def __init__(self, text: str, cause: Exception | None = None) -> None:
        super().__init__(text)
        self._cause = cause


def test_a_full_disk_below_the_state_is_told_by_the_cause_alone():
    full = SparksError("java.io.IOException", SparksError("IOException: No space left on device"))
    error = SparksError(f"{FAILED}[X] Error writing state store files. SQLSTATE: 58030", full)

    assert fault_of(error) == (
        "Error writing state store files. No space left on device. Make room; the next start goes "
        "on where it stopped.",
        False,
    )
