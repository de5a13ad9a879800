"""A Kafka client: one core without input and output, thin faces around it.

    from tarry.client import Consumer, Producer

Public names are imported from here.  Each is loaded with its first use, so that a program that
produces loads nothing of consumers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.client.core.admin.calls import (
        ClusterDescription as ClusterDescription,
    )
    from tarry.client.core.admin.calls import (
        ConfigEntry as ConfigEntry,
    )
    from tarry.client.core.admin.calls import (
        NewTopic as NewTopic,
    )
    from tarry.client.core.admin.calls import (
        TopicOutcome as TopicOutcome,
    )
    from tarry.client.core.admin.configs import (
        ConfigChange as ConfigChange,
    )
    from tarry.client.core.admin.groups import (
        GroupDescription as GroupDescription,
    )
    from tarry.client.core.admin.groups import (
        GroupOutcome as GroupOutcome,
    )
    from tarry.client.core.admin.groups import (
        ListedGroup as ListedGroup,
    )
    from tarry.client.core.admin.partitions import (
        TO_THE_END as TO_THE_END,
    )
    from tarry.client.core.consumer.handed_out import (
        ConsumerRecord as ConsumerRecord,
    )
    from tarry.client.core.consumer.handed_out import (
        RecordGroup as RecordGroup,
    )
    from tarry.client.core.consumer.lookup import (
        EARLIEST as EARLIEST,
    )
    from tarry.client.core.consumer.lookup import (
        LATEST as LATEST,
    )
    from tarry.client.core.consumer.lookup import (
        MAX_TIMESTAMP as MAX_TIMESTAMP,
    )
    from tarry.client.core.consumer.lookup import (
        FoundOffset as FoundOffset,
    )
    from tarry.client.core.group.consumer import (
        GroupView as GroupView,
    )
    from tarry.client.core.group.offsets.requests import (
        CommittedOffset as CommittedOffset,
    )
    from tarry.client.core.metadata import (
        Topic as Topic,
    )
    from tarry.client.errors import (
        BrokerError as BrokerError,
    )
    from tarry.client.errors import (
        BufferFull as BufferFull,
    )
    from tarry.client.errors import (
        ClientClosed as ClientClosed,
    )
    from tarry.client.errors import (
        ClientForked as ClientForked,
    )
    from tarry.client.errors import (
        CommitFailed as CommitFailed,
    )
    from tarry.client.errors import (
        ConcurrentUse as ConcurrentUse,
    )
    from tarry.client.errors import (
        CorruptRecords as CorruptRecords,
    )
    from tarry.client.errors import (
        DeliveryFailed as DeliveryFailed,
    )
    from tarry.client.errors import (
        DeliveryTimedOut as DeliveryTimedOut,
    )
    from tarry.client.errors import (
        GroupFailed as GroupFailed,
    )
    from tarry.client.errors import (
        LogTruncated as LogTruncated,
    )
    from tarry.client.errors import (
        NotSubscribed as NotSubscribed,
    )
    from tarry.client.errors import (
        OffsetOutOfRange as OffsetOutOfRange,
    )
    from tarry.client.errors import (
        PartitionerFailed as PartitionerFailed,
    )
    from tarry.client.errors import (
        ProducerFailed as ProducerFailed,
    )
    from tarry.client.errors import (
        RecordTooLarge as RecordTooLarge,
    )
    from tarry.client.errors import (
        TopicRecreated as TopicRecreated,
    )
    from tarry.client.errors import (
        UnknownTopic as UnknownTopic,
    )
    from tarry.client.sync.admin import (
        Admin as Admin,
    )
    from tarry.client.sync.consumer import (
        Consumer as Consumer,
    )
    from tarry.client.sync.listener import (
        Listener as Listener,
    )
    from tarry.client.sync.producer import (
        Producer as Producer,
    )
    from tarry.client.sync.producer import (
        Receipt as Receipt,
    )
    from tarry.link.errors import BrokerUnreachable as BrokerUnreachable
    from tarry.link.errors import ClientError as ClientError
    from tarry.link.errors import ConnectionLost as ConnectionLost
    from tarry.link.errors import InvalidRequest as InvalidRequest
    from tarry.link.errors import RequestTimedOut as RequestTimedOut
    from tarry.link.errors import TimedOut as TimedOut
    from tarry.link.errors import UnsupportedVersion as UnsupportedVersion
    from tarry.link.events import Address as Address

# Where each public name is.
MODULES: Final = {
    "tarry.client.sync.producer": (
        "Producer",
        "Receipt",
    ),
    "tarry.client.sync.consumer": ("Consumer",),
    "tarry.client.sync.listener": ("Listener",),
    "tarry.client.sync.admin": ("Admin",),
    "tarry.client.core.consumer.handed_out": ("ConsumerRecord", "RecordGroup"),
    "tarry.client.core.group.consumer": ("GroupView",),
    "tarry.client.core.group.offsets.requests": ("CommittedOffset",),
    "tarry.client.core.consumer.lookup": (
        "EARLIEST",
        "FoundOffset",
        "LATEST",
        "MAX_TIMESTAMP",
    ),
    "tarry.client.core.admin.calls": (
        "ClusterDescription",
        "ConfigEntry",
        "NewTopic",
        "TopicOutcome",
    ),
    "tarry.client.core.admin.configs": ("ConfigChange",),
    "tarry.client.core.admin.groups": (
        "GroupDescription",
        "GroupOutcome",
        "ListedGroup",
    ),
    "tarry.client.core.admin.partitions": ("TO_THE_END",),
    "tarry.client.core.metadata": ("Topic",),
    "tarry.link.events": ("Address",),
    "tarry.link.errors": (
        "BrokerUnreachable",
        "ClientError",
        "ConnectionLost",
        "InvalidRequest",
        "RequestTimedOut",
        "TimedOut",
        "UnsupportedVersion",
    ),
    "tarry.client.errors": (
        "BrokerError",
        "BufferFull",
        "ClientClosed",
        "ClientForked",
        "CommitFailed",
        "ConcurrentUse",
        "CorruptRecords",
        "DeliveryFailed",
        "DeliveryTimedOut",
        "GroupFailed",
        "LogTruncated",
        "NotSubscribed",
        "OffsetOutOfRange",
        "PartitionerFailed",
        "ProducerFailed",
        "RecordTooLarge",
        "TopicRecreated",
        "UnknownTopic",
    ),
}

_MODULE_OF: Final = {name: module for module, names in MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULE_OF])
