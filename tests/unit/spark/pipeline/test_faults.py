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
        "Failed to find the data source: tarry.",
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
