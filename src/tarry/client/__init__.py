"""Client library for Tarry and Apache Kafka: Producer, Consumer and Admin.

    from tarry.client import Consumer, Producer

Public names are imported from here.  Those for asyncio come from `tarry.client.aio`, those for
Arrow from `tarry.client.arrow`, and all errors also from `tarry.client.errors`.  A name is loaded
at its first use, so that a program that only produces loads nothing for consumers.

Inside, one core without input and output (`core`) does the work; the faces around it (`sync`,
`aio`, `arrow`) are thin and share `face`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

# Imports for type checkers; a test compares them with the table below.
if TYPE_CHECKING:
    from tarry.client.codecs import Codec as Codec, Json as Json, Text as Text
    from tarry.client.core.admin.calls import (
        ClusterDescription as ClusterDescription,
        ConfigEntry as ConfigEntry,
        ConfigSynonym as ConfigSynonym,
        FeatureDescription as FeatureDescription,
        NewTopic as NewTopic,
        TopicOutcome as TopicOutcome,
    )
    from tarry.client.core.admin.configs import (
        APPEND as APPEND,
        DELETE as DELETE,
        SET as SET,
        SUBTRACT as SUBTRACT,
        ConfigChange as ConfigChange,
    )
    from tarry.client.core.admin.epochs import FoundEpoch as FoundEpoch, FoundEpochs as FoundEpochs
    from tarry.client.core.admin.groups import (
        GroupDescription as GroupDescription,
        GroupMember as GroupMember,
        GroupOutcome as GroupOutcome,
        ListedGroup as ListedGroup,
    )
    from tarry.client.core.admin.log_dirs import (
        LogDirectory as LogDirectory,
        ReplicaSize as ReplicaSize,
    )
    from tarry.client.core.admin.memory import GroupMemory as GroupMemory, GroupNote as GroupNote
    from tarry.client.core.admin.offsets import PartitionErrors as PartitionErrors
    from tarry.client.core.admin.partitions import (
        TO_THE_END as TO_THE_END,
        DeletedRecords as DeletedRecords,
    )
    from tarry.client.core.admin.producers import (
        ActiveProducer as ActiveProducer,
        DescribedProducers as DescribedProducers,
    )
    from tarry.client.core.admin.replicas import Reassignment as Reassignment
    from tarry.client.core.consumer.lookup import (
        EARLIEST as EARLIEST,
        LATEST as LATEST,
        MAX_TIMESTAMP as MAX_TIMESTAMP,
        FoundOffset as FoundOffset,
    )
    from tarry.client.core.consumer.position import PartitionPosition as PartitionPosition
    from tarry.client.core.consumer.record_group import (
        ConsumerRecord as ConsumerRecord,
        RecordGroup as RecordGroup,
        TypedRecord as TypedRecord,
    )
    from tarry.client.core.group.assignment.assignor import (
        AssignFunction as AssignFunction,
        Assignor as Assignor,
        PreviousAssignment as PreviousAssignment,
    )
    from tarry.client.core.group.assignment.consumer_protocol import (
        SubscribedMember as SubscribedMember,
        Subscription as Subscription,
    )
    from tarry.client.core.group.identity import GroupView as GroupView
    from tarry.client.core.group.offsets.commit import CommitCallback as CommitCallback
    from tarry.client.core.group.offsets.requests import CommittedOffset as CommittedOffset
    from tarry.client.core.group.offsets.what import CommitWhat as CommitWhat
    from tarry.client.core.outgoing import Content as Content, HeadersGiven as HeadersGiven
    from tarry.client.core.schedule.calendars import ComparedCalendar as ComparedCalendar
    from tarry.client.core.schedule.entries import (
        ScheduleBucket as ScheduleBucket,
        ScheduleCounts as ScheduleCounts,
        ScheduleCursor as ScheduleCursor,
        ScheduledRecords as ScheduledRecords,
        ScheduleOutcome as ScheduleOutcome,
        SchedulePage as SchedulePage,
        ScheduleTotals as ScheduleTotals,
    )
    from tarry.client.core.topic import (
        BrokerMetadata as BrokerMetadata,
        PartitionMetadata as PartitionMetadata,
        Topic as Topic,
    )
    from tarry.client.errors import (
        AssignorFailed as AssignorFailed,
        BrokerError as BrokerError,
        BrokerUnreachable as BrokerUnreachable,
        BufferFull as BufferFull,
        ClientClosed as ClientClosed,
        ClientError as ClientError,
        ClientForked as ClientForked,
        CommitFailed as CommitFailed,
        ConcurrentUse as ConcurrentUse,
        ConnectionLost as ConnectionLost,
        CorruptRecords as CorruptRecords,
        DecodeError as DecodeError,
        DeliveryFailed as DeliveryFailed,
        DeliveryTimedOut as DeliveryTimedOut,
        GroupFailed as GroupFailed,
        InvalidRequest as InvalidRequest,
        InvalidSetting as InvalidSetting,
        LogTruncated as LogTruncated,
        NotSubscribed as NotSubscribed,
        OffsetOutOfRange as OffsetOutOfRange,
        PartitionerFailed as PartitionerFailed,
        ProducerFailed as ProducerFailed,
        RecordTooLarge as RecordTooLarge,
        RequestTimedOut as RequestTimedOut,
        SchedulingUnsupported as SchedulingUnsupported,
        TimedOut as TimedOut,
        TopicRecreated as TopicRecreated,
        UnknownTopic as UnknownTopic,
        UnsupportedVersion as UnsupportedVersion,
    )
    from tarry.client.metrics import (
        ConnectionMetrics as ConnectionMetrics,
        ConsumerMetrics as ConsumerMetrics,
        LatencyMetrics as LatencyMetrics,
        PlaceMetrics as PlaceMetrics,
        ProducerMetrics as ProducerMetrics,
    )
    from tarry.client.places import TopicPartition as TopicPartition
    from tarry.client.settings import (
        PartitionFunction as PartitionFunction,
        ProducerValue as ProducerValue,
        SettingValue as SettingValue,
    )
    from tarry.client.sync.admin import Admin as Admin
    from tarry.client.sync.consumer import Consumer as Consumer
    from tarry.client.sync.listener import Listener as Listener
    from tarry.client.sync.producer import (
        OnDelivery as OnDelivery,
        Producer as Producer,
        Receipt as Receipt,
    )
    from tarry.link.events import Address as Address
    from tarry.link.versions import VersionTable as VersionTable
    from tarry.records.record import Record as Record

# Module of each public name: each line has a module and its names.
_TABLE: Final = """
tarry.client.codecs                      Codec Json Text
tarry.client.core.admin.calls            ClusterDescription ConfigEntry ConfigSynonym
                                         FeatureDescription NewTopic TopicOutcome
tarry.client.core.admin.configs          APPEND ConfigChange DELETE SET SUBTRACT
tarry.client.core.admin.epochs           FoundEpoch FoundEpochs
tarry.client.core.admin.groups           GroupDescription GroupMember GroupOutcome ListedGroup
tarry.client.core.admin.log_dirs         LogDirectory ReplicaSize
tarry.client.core.admin.memory           GroupMemory GroupNote
tarry.client.core.admin.offsets          PartitionErrors
tarry.client.core.admin.partitions       DeletedRecords TO_THE_END
tarry.client.core.admin.producers        ActiveProducer DescribedProducers
tarry.client.core.admin.replicas         Reassignment
tarry.client.core.consumer.lookup        EARLIEST FoundOffset LATEST MAX_TIMESTAMP
tarry.client.core.consumer.position      PartitionPosition
tarry.client.core.consumer.record_group  ConsumerRecord RecordGroup TypedRecord
tarry.client.core.group.assignment.assignor AssignFunction Assignor PreviousAssignment
tarry.client.core.group.assignment.consumer_protocol SubscribedMember Subscription
tarry.client.core.group.identity         GroupView
tarry.client.core.group.offsets.commit   CommitCallback
tarry.client.core.group.offsets.requests CommittedOffset
tarry.client.core.group.offsets.what     CommitWhat
tarry.client.core.outgoing               Content HeadersGiven
tarry.client.core.schedule.calendars     ComparedCalendar
tarry.client.core.schedule.entries       ScheduleBucket ScheduleCounts ScheduleCursor
                                         ScheduledRecords
                                         ScheduleOutcome SchedulePage ScheduleTotals
tarry.client.core.topic                  BrokerMetadata PartitionMetadata Topic
tarry.client.errors                      AssignorFailed BrokerError BrokerUnreachable BufferFull
                                         ClientClosed ClientError ClientForked CommitFailed
                                         ConcurrentUse ConnectionLost CorruptRecords DecodeError
                                         DeliveryFailed
                                         DeliveryTimedOut GroupFailed InvalidRequest InvalidSetting
                                         LogTruncated NotSubscribed OffsetOutOfRange
                                         PartitionerFailed ProducerFailed RecordTooLarge
                                         RequestTimedOut SchedulingUnsupported TimedOut
                                         TopicRecreated UnknownTopic
                                         UnsupportedVersion
tarry.client.metrics                     ConnectionMetrics ConsumerMetrics LatencyMetrics
                                         PlaceMetrics ProducerMetrics
tarry.client.places                      TopicPartition
tarry.client.settings                    PartitionFunction ProducerValue SettingValue
tarry.client.sync.admin                  Admin
tarry.client.sync.consumer               Consumer
tarry.client.sync.listener               Listener
tarry.client.sync.producer               OnDelivery Producer Receipt
tarry.link.events                        Address
tarry.link.versions                      VersionTable
tarry.records.record                     Record
"""


def _read(table: str) -> dict[str, str]:
    """Return the module of each public name."""
    found: dict[str, str] = {}
    module = ""
    for word in table.split():
        if "." in word:
            module = word
        else:
            found[word] = module
    return found


MODULES: Final = _read(_TABLE)


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    module = MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(module), name)


# Names that `from tarry.client import *` imports.
__all__ = sorted(MODULES)  # noqa: PLE0605  # a test compares it with the names for type checkers


def __dir__() -> list[str]:
    return sorted([*globals(), *MODULES])
