"""Rules for one row of etcd by itself: which keys and values are sound.

Brokers apply these rules to what a revision brings, and `row_check` applies them to all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tarry.base.errors import CorruptData
from tarry.base.ids import id_from_text
from tarry.base.partition_row import PartitionRow
from tarry.cluster.rows.rows import (
    AnyRow,
    BrokerRow,
    ClusterRow,
    ConfigsRow,
    DeletedRow,
    FeatureRow,
    GroupConfigsRow,
    Keys,
    LifeRow,
    ProducerIdsRow,
    TopicRow,
    decode_row,
    group_id_of,
    shown_key,
)
from tarry.cluster.state.records import EVERY_BROKER
from tarry.cluster.state.topic_names import name_fault

_INT32_MAX: Final = 2**31 - 1
_INT64_MAX: Final = 2**63 - 1
# Texts and ports of a row go to clients, so they have to fit into Kafka's fields.
_TEXT_BYTES_MAX: Final = 2**15 - 1
_PORT_MAX: Final = 2**16 - 1
_LEVEL_MAX: Final = 2**15 - 1
# More partitions than any topic has.  A larger number is refused before memory is taken for it.
_PARTITIONS_MAX: Final = 1_000_000


def key_fault(keys: Keys, key: bytes) -> str:
    """Return why no broker writes such a key; "" if one does, or if the kind is not known here."""
    kind, *names = keys.place(key)
    if not _is_text(key):
        return "the key is no text"
    wanted = _NAMES_IN_KEYS.get(kind)
    if wanted is None:
        return ""
    if len(names) != len(wanted):
        return f"a key of the kind {kind} has {1 + len(wanted)} parts"
    for (what, is_one), name in zip(wanted, names, strict=True):
        if not is_one(name):
            return f"it names no {what}"
    return ""


def read_row(kind: str, key: bytes, value: bytes) -> AnyRow:
    """Return a row that is sound by itself; raise `NewerFormat` or `CorruptData` otherwise."""
    row = decode_row(kind, key, value)
    faults = row_faults(row)
    if faults:
        raise CorruptData(f"{shown_key(key)} in etcd makes no sense: {'; '.join(faults)}")
    return row


def row_faults(row: AnyRow) -> list[str]:
    """Return why a row makes no sense though it can be decoded."""
    match row:
        case ClusterRow() if not row.cluster_id:
            return ["it has no cluster id"]
        case BrokerRow():
            return _broker_faults(row)
        case LifeRow() if not 0 <= row.lease_id <= _INT64_MAX:
            return ["its lease has no id"]
        case TopicRow():
            return _topic_faults(row)
        case PartitionRow():
            return _part_faults(row)
        case DeletedRow() if not 0 <= row.partition_count <= _PARTITIONS_MAX:
            return [f"no topic has {row.partition_count} partitions"]
        case DeletedRow():
            return _found(name_fault(row.name))
        case ConfigsRow() | GroupConfigsRow():
            return _text_faults([*row.configs, *row.configs.values()])
        case FeatureRow() if not 0 <= row.level <= _LEVEL_MAX:
            return [f"{row.level} is no level of a feature"]
        case ProducerIdsRow() if not 0 <= row.next_id <= _INT64_MAX:
            return [f"{row.next_id} is no producer id"]
        case _:
            return []


def listed(broker_ids: Sequence[int]) -> str:
    """Return a text that lists broker ids for a sentence."""
    return ", ".join(map(str, broker_ids)) or "none"


def _found(fault: str) -> list[str]:
    return [fault] if fault else []


def _broker_faults(row: BrokerRow) -> list[str]:
    found: list[str] = []
    if any(not 0 <= level <= _LEVEL_MAX for level in row.levels.values()):
        found.append("a feature level is out of its range")
    texts = [row.rack]
    for listener, (host, port) in row.endpoints.items():
        texts += [listener, host]
        if not 0 <= port <= _PORT_MAX:
            found.append(f"{port} is no port")
    return found + _text_faults(texts)


def _text_faults(texts: list[str]) -> list[str]:
    if any(len(text.encode()) > _TEXT_BYTES_MAX for text in texts):
        return ["a text in it is longer than clients can be told"]
    return []


def _topic_faults(row: TopicRow) -> list[str]:
    found = _found(name_fault(row.name))
    end = 0
    # Thousands of partitions share a few lists of replicas, so each list is checked once.
    sound: dict[tuple[int, ...], None] = {}
    for block in row.blocks:
        if block.first_index != end:
            found.append(f"partitions from {end} on are followed by those from {block.first_index}")
        if any(not 0 <= epoch <= _INT64_MAX for _, epoch in block.epochs):
            found.append("an epoch is out of its range")
        for index, replicas in enumerate(block.replicas, block.first_index):
            key = tuple(replicas)
            if key in sound:
                continue
            faults = [f"partition {index}: {fault}" for fault in _replica_faults(replicas)]
            found += faults
            if not faults:
                sound[key] = None
        end = block.first_index + len(block.replicas)
    return found if end > 0 or found else ["it has no partition"]


def _replica_faults(replicas: list[int]) -> list[str]:
    if not replicas:
        return ["it has no replica"]
    if len(dict.fromkeys(replicas)) < len(replicas):
        return [f"replicas {listed(replicas)} name a broker twice"]
    if not all(_is_broker_id(each) for each in replicas):
        return [f"replicas {listed(replicas)} name what is no broker's id"]
    return []


def _part_faults(row: PartitionRow) -> list[str]:
    """Return why nobody may lead, follow or change a partition with this row."""
    replicas = listed(row.replicas)
    found = _replica_faults(row.replicas)
    if (
        not 0 <= row.leader_epoch <= _INT32_MAX
        or not 0 <= row.partition_epoch <= _INT32_MAX
        or not -1 <= row.broker_epoch <= _INT64_MAX
        or not -1 <= row.unclean_epoch <= row.leader_epoch
    ):
        found.append("an epoch is out of its range")
    if row.leader_id not in row.replicas:
        found.append(f"leader {row.leader_id} is none of the replicas {replicas}")
    if not row.isr:
        found.append("no replica is in sync")
    elif len(dict.fromkeys(row.isr)) < len(row.isr):
        found.append(f"{listed(row.isr)} in sync name a broker twice")
    for what, broker_ids in (
        ("in sync", row.isr),
        ("being added", row.adding),
        ("being removed", row.removing),
    ):
        others = [each for each in broker_ids if each not in row.replicas]
        if others:
            found.append(f"{listed(others)} {what}, but the replicas are {replicas}")
    return found


def _is_broker_id(number: int) -> bool:
    return 0 <= number <= _INT32_MAX


def _is_text(key: bytes) -> bool:
    try:
        key.decode()
    except UnicodeDecodeError:
        return False
    return True


def _is_number(text: str) -> bool:
    """Return whether the text is a number as brokers write it: without leading zeros."""
    return text.isascii() and text.isdigit() and len(text) <= 10 and str(int(text)) == text


def _is_broker(text: str) -> bool:
    return _is_number(text) and _is_broker_id(int(text))


def _is_configured(text: str) -> bool:
    return _is_broker(text) or text == str(EVERY_BROKER)


def _is_index(text: str) -> bool:
    return _is_number(text) and int(text) < _PARTITIONS_MAX


def _is_topic(text: str) -> bool:
    try:
        id_from_text(text)
    except ValueError:
        return False
    return True


def _is_group(text: str) -> bool:
    try:
        group_id_of(text)
    except CorruptData:
        return False
    return True


def _is_producer(text: str) -> bool:
    return text == "producer"


_Rule = tuple[str, Callable[[str], bool]]
_BROKER: Final[_Rule] = ("broker", _is_broker)
_TOPIC: Final[_Rule] = ("topic", _is_topic)

# Rules of the names behind the kind in a row's key.
_NAMES_IN_KEYS: Final[dict[str, tuple[_Rule, ...]]] = {
    "cluster": (),
    "brokers": (_BROKER,),
    "lives": (_BROKER,),
    "names": (("name", bool),),
    "topics": (_TOPIC,),
    "parts": (_TOPIC, ("partition", _is_index)),
    "deleted": (_TOPIC,),
    "configs": (("broker", _is_configured),),
    "ids": (("kind of ids", _is_producer),),
    "features": (("feature", bool),),
    "groups": (("group", _is_group),),
}
