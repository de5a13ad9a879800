"""Faults of a stage: a sentence for each, and whether another start can help."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from tarry.spark.reading.loss import GO_ON

# Last line of a traceback of this package, which Spark tells as text.
OURS: Final = re.compile(r"\btarry(?:\.\w+)*\.(\w+): (\S.*)")
# Last line of any traceback.
RAISED: Final = re.compile(r"^(?:\w+\.)*[A-Z]\w+(?:Error|Exception): (.+)$", re.MULTILINE)
# What Spark and its bridge to Java say before the reason.
BEFORE: Final = re.compile(
    r"^(?:An error occurred while calling \S+\s+: )?"
    r"(?:\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: )?"
    r"(?:[\w.$]+(?:Error|Exception): )*(?:\[(?:[A-Z_.]+|Errno \d+)\] )?"
)
BEHIND: Final = " SQLSTATE:"

# Classes of errors that are the same after another start.
HOPELESS: Final = (
    "AnalysisException",
    "ArchiveRefused",
    "DataLost",
    "InvalidSetting",
    "OptionRefused",
    "ParseException",
    "RecordTooLarge",
    "SinkRefused",
    "StepRefused",
)

# What a run has in place of an option of the source.
SKIP_LOST: Final = "Start the run once with --skip-lost to go on with what is there"

# What a consumer may do about a damaged log, and what a run may.
SEEK: Final = re.compile(r"; to go on behind what is damaged, seek\('(\S+)', (\d+), (\d+)\)")
GIVE_UP: Final = (
    r". Bring the log back from a replica or a copy; or give up all before offset \3 by `tarry "
    r"topics delete-records \1 -p \2 --before \3`, and start the run once with --skip-lost"
)

# Other advice of the sink, and what a user of the pipeline file can do instead.
ADVICE: Final = (
    (r"give this query a sinkLocation of its own", "name another checkpoint in the file"),
    (r"begin (?:a|the) query with a checkpoint of its own", "name another checkpoint in the file"),
    (
        r"give another directory as the option sinkLocation",
        "name a checkpoint on such a file system in the file",
    ),
    (
        r"\(cleanup\.policy\): fill the column key",
        "(cleanup.policy): let records have keys where they are sent, or take compact out of the "
        "topic's cleanup.policy",
    ),
    (r"start the query again", "start the run again"),
)

# Errors of a chain that are looked at.
CAUSES_MAX: Final = 10

NO_ROOM: Final = ("No space left on device", "Disk quota exceeded")


class KnownFault(NamedTuple):
    """Fault that Spark tells in words of its own."""

    pattern: re.Pattern[str]
    # May name groups of the pattern.
    sentence: str
    is_hopeless: bool = True


KNOWN: Final = (
    KnownFault(
        re.compile("CONCURRENT_STREAM_LOG_UPDATE"),
        "another driver runs it on this checkpoint: end one of the two.",
    ),
    KnownFault(
        re.compile("stopped SparkContext|SparkContext was (?:shut down|stopped)"),
        "Spark has ended under it: its master or its Java is gone, or somebody ended the "
        "application. Start the run again when Spark is there.",
    ),
    # --- State
    KnownFault(
        re.compile(
            "STATE_STORE_(?:KEY_SCHEMA_NOT_COMPATIBLE|VALUE_SCHEMA_NOT_COMPATIBLE"
            "|COLUMN_FAMILY_SCHEMA_INCOMPATIBLE|INVALID_VALUE_SCHEMA_EVOLUTION)"
        ),
        "the state in its checkpoint was written by another version of Tarry, or for other "
        "columns: go on with what wrote it, or name another checkpoint in the file.",
    ),
    KnownFault(
        re.compile("STREAMING_STATEFUL_OPERATOR_(?:NOT_MATCH|MISSING_STATE)"),
        "the file has got or lost a step that keeps state since its checkpoint was made, or the "
        "state was deleted: write what the file had, bring the state back, or name another "
        "checkpoint in the file.",
    ),
    # --- Workers
    KnownFault(
        re.compile("Failed to find the data source: tarry"),
        "Spark's Python has not found the format tarry: the machine is too busy, or the Python "
        "that PYSPARK_PYTHON names has no Tarry.",
        is_hopeless=False,
    ),
    KnownFault(
        # Not for want of memory or of processes (11, 12).
        re.compile(r'Cannot run program "([^"]*)".*error[=:] ?(?:2|13)\b'),
        r"a worker of Spark has no program \1: set PYSPARK_PYTHON to a Python that every worker "
        "has at the same path, with the same Tarry.",
    ),
    KnownFault(
        re.compile(r"Python in worker has different version: (\S+) than that in driver: (\S+),"),
        r"Spark's workers run Python \1, and this is Python \2: set PYSPARK_PYTHON to a Python \2 "
        "that every worker has at the same path, with the same Tarry.",
    ),
    KnownFault(
        re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'"),
        r"a Python of Spark's workers has no module \1: install there what this Python has, or set "
        "PYSPARK_PYTHON to one that has it at the same path on every worker.",
    ),
    KnownFault(
        re.compile(
            r"(?:Can't get attribute '\w+' on <module|cannot import name '\w+' from) 'tarry"
        ),
        "Spark's workers have another version of Tarry than this Python: install the same one on "
        "every worker.",
    ),
    KnownFault(
        re.compile(r"ExecutorLostFailure \((executor \S+)[^)]*\)(?: Reason: ([^\n]*[^\n.]))?"),
        r"Spark lost the processes that did the work, at last \1 (\2): see that its "
        r"workers run, and "
        "have memory enough.",
        is_hopeless=False,
    ),
)

# Spark waits 10 s for a Python process of its own, whatever its settings say.
NOT_IN_TIME: Final = "Python worker failed to connect back"
# What Spark says of an end of a connection to a Python process.
NO_REASON: Final = "Spark tells no reason: a process of it was killed, or ran out of memory."
# Errors of the bridge to Java when its process is gone.
NO_ANSWER: Final = re.compile(r"An error occurred while calling \S+\s*")
JAVA_GONE: Final = ("Py4JNetworkError", "ConnectionRefusedError", "ConnectionResetError")


class StageFault(NamedTuple):
    """Fault of a stage; a hopeless one is the same after another start."""

    sentence: str
    is_hopeless: bool = False


class StageFailed(Exception):
    """A stage came to an end that no other start mends; the text says which, and what to do."""


def fault_of(error: BaseException) -> StageFault:
    """Return the sentence of what ended a stage."""
    told, whole = str(error), _with_causes(error)
    name = type(error).__name__
    if name in JAVA_GONE or (name == "Py4JError" and NO_ANSWER.fullmatch(told)):
        return StageFault("Spark's Java process has ended: start the run again.", True)
    for known in KNOWN:
        found = known.pattern.search(whole)
        if found is not None:
            sentence = found.expand(known.sentence).replace(" ()", "")
            return StageFault(sentence, known.is_hopeless)
    ours = OURS.findall(told)
    if NOT_IN_TIME in told and not ours:
        return StageFault(
            "Spark gave up on a Python process that did not start in 10 s: the machine is too busy."
        )
    if ours:
        name, told = ours[-1]
    elif raised := RAISED.findall(told):
        told = raised[-1]
    sentence = _sentence(told) or (NO_REASON if told else f"{name}.")
    sentence = sentence.replace(GO_ON, SKIP_LOST)
    sentence = SEEK.sub(GIVE_UP, sentence)
    for text, instead in ADVICE:
        sentence = re.sub(text, instead, sentence)
    for text in NO_ROOM:
        if text in whole:
            sentence = sentence if text in sentence else f"{sentence} {text}."
            if "ake room" not in sentence:
                sentence += " Make room; the next start goes on where it stopped."
    return StageFault(sentence, name in HOPELESS)


def _with_causes(error: BaseException) -> str:
    """Return the texts of an error and of what caused it: a full disk may be told there only."""
    texts: list[str] = []
    current: BaseException | None = error
    while current is not None and len(texts) < CAUSES_MAX:
        texts.append(str(current))
        # Spark has Java's causes in an attribute of its own.
        current = getattr(current, "_cause", None) or current.__cause__
    return "\n".join(texts)


def _sentence(told: str) -> str:
    """Return the first line without Spark's codes, with a full stop."""
    line = BEFORE.sub("", told.strip()).split("\n", 1)[0].partition(BEHIND)[0].strip()
    # What Java makes of an error without a text.
    line = "" if line == "null" else line
    return line if not line or line.endswith((".", "!", "?")) else line + "."
