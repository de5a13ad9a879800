"""Checker of readers: each record that they may read, once and in order, and no other."""

from __future__ import annotations

from tarry.simulation.replicas.cluster import PeerCluster
from tarry.simulation.replicas.log import TransactionLog
from tarry.simulation.replicas.reader import ReaderNode, SoughtReading


def check_readings(cluster: PeerCluster, reader: ReaderNode) -> list[str]:
    """Check all that one reader was handed out."""
    found = list(reader.violations)
    for reading in reader.readings:
        log = cluster.logs[reading.place[1]]
        sentence = _wrong(log, reading, is_committed=reader.is_committed)
        if sentence:
            found.append(sentence)
    return found


def _wrong(log: TransactionLog, reading: SoughtReading, *, is_committed: bool) -> str:
    """Return what is wrong with the records since an offset was sought, or ""."""
    visible = log.visible(is_committed=is_committed)
    expected = [one for one in visible if one[0] >= reading.offset]
    for number, (offset, value) in enumerate(reading.records):
        if number < len(expected) and expected[number] == (offset, value):
            continue
        topic, partition = reading.place
        said = f"{reading.reader} was handed out offset {offset} of {topic}-{partition}"
        transaction = log.transaction_at(offset)
        if is_committed and transaction is not None and transaction.is_aborted:
            return f"{said}, of a transaction that was aborted"
        if number == len(expected):
            return f"{said}, which no reader may have"
        if expected[number][0] != offset:
            return f"{said}, and {expected[number][0]} was to come"
        return f"{said} with the value {value[:20]!r}, and it holds {expected[number][1][:20]!r}"
    return ""
