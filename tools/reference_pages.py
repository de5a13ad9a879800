"""The pages of `docs/reference` that are written from docstrings: what stands where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Page:
    """Page: the package it is of, and what stands under which heading."""

    file: str
    package: str
    see: str
    sections: dict[str, tuple[str, ...]]
    # Named without an underscore for the package's own modules, and not for users.
    hidden: tuple[str, ...] = ()
    # Classes that a user is given and never makes.
    given: tuple[str, ...] = ()
    # A package with several pages: what this one is about, instead of the package's docstring.
    about: str = ""
    # Pages of one shelf know each other's names; the same name may stand on two shelves.
    shelf: str = ""
    # Attributes that users may look at, of classes that have others.
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)


PAGES: Final = (
    Page(
        file="timer.md",
        package="timer",
        see="[How the wheel works](../explanation/timing-wheel.md), with pictures. How to: "
        "[time-outs in asyncio](../how-to/asyncio-timeouts.md), "
        "[a delay queue in threads](../how-to/delay-queue.md), "
        "[periodic work](../how-to/periodic-work.md).",
        sections={
            "Pure timers": ("TimingWheel", "HeapTimer", "RoundsTimer", "PureTimer"),
            "Entries": ("TimerEntry", "PeriodicEntry"),
            "Threads": ("SystemTimer", "CallEntry", "CallEveryEntry"),
            "asyncio": ("AsyncioTimer", "TimerHandle", "PeriodicHandle", "Timeout"),
            "Errors": ("TimerShutDown",),
            "Looking into a wheel": ("look_at", "WheelView", "LevelView", "BucketView"),
        },
        hidden=(
            "SystemTimer.seconds_until",
            "SystemTimer.depart",
            "SystemTimer.begin_beat",
            "SystemTimer.end_beat",
            "TimerHandle.drop",
            "TimerHandle.what",
            "Timeout.expire",
            "Timeout.drop",
            "Timeout.what",
        ),
        given=(
            "CallEntry",
            "CallEveryEntry",
            "TimerHandle",
            "PeriodicHandle",
            "Timeout",
            "WheelView",
            "LevelView",
            "BucketView",
        ),
    ),
    Page(
        file="purgatory.md",
        package="purgatory",
        see="How to: [operations keyed by a resource](../how-to/keyed-operations.md). "
        "[How it works](../explanation/timing-wheel.md#what-stands-on-it-operations-that-wait).",
        sections={
            "Operations": ("DelayedOperation", "PayloadOperation", "OperationListener"),
            "Purgatories": ("Purgatory", "ThreadedPurgatory"),
            "Errors": ("PurgatoryShutDown",),
        },
        hidden=("Purgatory.complete", "Purgatory.expire"),
    ),
    Page(
        file="testing.md",
        package="testing",
        see="How to: [test your Kafka code without Docker](../how-to/test-without-docker.md).",
        sections={
            "Brokers": ("Tarry", "TarrySession", "TarryProcess", "TarryWorld"),
            "What brokers have in common": ("BrokerAccess", "FaultControls"),
            "Their clocks and faults": ("BrokerClock", "ApiFault"),
            "Clients in simulated time": ("WorldProducer", "WorldConsumer", "WorldAdmin"),
            "Errors": ("ProcessEnded",),
        },
        hidden=(
            "ApiFault.fits",
            "ApiFault.handle",
            "FaultControls.on_faults",
            "TarryWorld.on_faults",
            "TarryWorld.on_life_begins",
            "TarryWorld.on_life_ends",
            "WorldAdmin.perform",
            "WorldAdmin.user",
            "WorldConsumer.perform",
            "WorldConsumer.user",
            "WorldProducer.perform",
            "WorldProducer.user",
        ),
        given=(
            "BrokerAccess",
            "FaultControls",
            "TarrySession",
            "BrokerClock",
            "ApiFault",
            "WorldProducer",
            "WorldConsumer",
            "WorldAdmin",
        ),
    ),
    Page(
        file="client.md",
        package="client",
        see="How to: [produce so that nothing is lost](../how-to/produce-safely.md), "
        "[consume in a group](../how-to/consume-in-a-group.md), "
        "[objects, committed records, replicas nearby]"
        "(../how-to/objects-and-committed-records.md), "
        "[fork and workers](../how-to/fork-and-workers.md). "
        "[What a receipt, a commit and a rebalance promise](../explanation/client-promises.md). "
        "On pages of their own: [settings](settings.md#clients), [Admin](client-admin.md), "
        "[errors](client-errors.md), [asyncio](client-aio.md), [Arrow](client-arrow.md).",
        sections={
            "Producing": (
                "Producer",
                "Receipt",
                "OnDelivery",
                "Content",
                "HeadersGiven",
                "PartitionFunction",
            ),
            "Consuming": (
                "Consumer",
                "Listener",
                "RecordGroup",
                "ConsumerRecord",
                "Record",
                "TypedRecord",
                "TopicPartition",
                "PartitionPosition",
                "GroupView",
            ),
            "Commits": ("CommitWhat", "CommittedOffset", "CommitCallback"),
            "Codecs": ("Codec", "Text", "Json"),
            "Assignors": (
                "Assignor",
                "AssignFunction",
                "SubscribedMember",
                "Subscription",
                "PreviousAssignment",
            ),
            "Metrics": (
                "ProducerMetrics",
                "LatencyMetrics",
                "ConsumerMetrics",
                "PlaceMetrics",
                "ConnectionMetrics",
            ),
            "Settings": ("SettingValue", "ProducerValue"),
        },
        hidden=(
            "Producer.acknowledged",
            "Producer.is_waiting",
            "Producer.settled",
            "PartitionPosition.drop_fetched",
            "PartitionPosition.fail",
            "PartitionPosition.epoch_before",
            "PartitionPosition.fail_void",
            "PartitionPosition.finish",
            "PartitionPosition.give_back",
            "PartitionPosition.has_records",
            "PartitionPosition.has_unread",
            "PartitionPosition.hold",
            "PartitionPosition.let_go",
            "PartitionPosition.note_epoch",
            "PartitionPosition.seek",
            "Receipt.batch",
            "Receipt.owner",
        ),
        given=(
            "ConnectionMetrics",
            "ConsumerMetrics",
            "ConsumerRecord",
            "GroupView",
            "LatencyMetrics",
            "PartitionPosition",
            "PlaceMetrics",
            "PreviousAssignment",
            "ProducerMetrics",
            "Receipt",
            "Record",
            "RecordGroup",
            "SubscribedMember",
            "Subscription",
        ),
        attributes={
            "PartitionPosition": (
                "topic",
                "partition",
                "position",
                "is_paused",
                "high_watermark",
                "log_start_offset",
            ),
            "Consumer": (),
            "Producer": (),
        },
        shelf="client",
    ),
    Page(
        file="client-admin.md",
        package="client",
        about="Admin\nTopics, settings, groups and the cluster.  What several things are asked "
        "for in one call have an outcome each: an error of one stands beside the answers of the "
        "others and is not raised.",
        see="How to: [manage topics, settings and groups](../how-to/administer.md). The same in "
        "asyncio: [tarry.client.aio](client-aio.md). Errors: [tarry.client: errors]"
        "(client-errors.md). Settings: [those of every client](settings.md#clients).",
        sections={
            "Admin": ("Admin",),
            "Topics": (
                "NewTopic",
                "TopicOutcome",
                "Topic",
                "PartitionMetadata",
                "DeletedRecords",
                "TO_THE_END",
            ),
            "Settings of topics and brokers": (
                "ConfigChange",
                "SET",
                "DELETE",
                "APPEND",
                "SUBTRACT",
                "ConfigEntry",
                "ConfigSynonym",
            ),
            "Groups": (
                "ListedGroup",
                "GroupDescription",
                "GroupMember",
                "GroupOutcome",
                "PartitionErrors",
                "GroupMemory",
                "GroupNote",
            ),
            "Offsets": (
                "FoundOffset",
                "EARLIEST",
                "LATEST",
                "MAX_TIMESTAMP",
                "FoundEpochs",
                "FoundEpoch",
            ),
            "Scheduled records": (
                "SchedulePage",
                "ScheduledRecords",
                "ScheduleTotals",
                "ScheduleBucket",
                "ScheduleCounts",
                "ScheduleOutcome",
                "ScheduleCursor",
            ),
            "The cluster": (
                "ClusterDescription",
                "ComparedCalendar",
                "BrokerMetadata",
                "Address",
                "FeatureDescription",
                "VersionTable",
                "LogDirectory",
                "ReplicaSize",
                "DescribedProducers",
                "Reassignment",
                "ActiveProducer",
            ),
        },
        hidden=("Topic.needs_refresh",),
        attributes={"Admin": ()},
        given=(
            "ActiveProducer",
            "Address",
            "BrokerMetadata",
            "ClusterDescription",
            "ComparedCalendar",
            "ConfigEntry",
            "ConfigSynonym",
            "FeatureDescription",
            "FoundEpoch",
            "FoundOffset",
            "GroupDescription",
            "GroupMember",
            "GroupMemory",
            "GroupNote",
            "GroupOutcome",
            "ListedGroup",
            "LogDirectory",
            "PartitionMetadata",
            "ReplicaSize",
            "ScheduleBucket",
            "ScheduleCounts",
            "ScheduledRecords",
            "ScheduleOutcome",
            "SchedulePage",
            "ScheduleTotals",
            "Topic",
            "TopicOutcome",
        ),
        shelf="client",
    ),
    Page(
        file="client-errors.md",
        package="client",
        about="errors\nEverything that the client raises for what went wrong is a `ClientError`, "
        "but for `InvalidSetting`, and for TypeError and ValueError where an argument cannot be "
        "meant.  The names are also in `tarry.client.errors`, which loads nothing else of the "
        "client.  "
        "`is_retriable` says whether the same thing may succeed later without a change; the client "
        "has then tried until its deadline already.",
        see="[What can go wrong when producing](../how-to/produce-safely.md#what-can-go-wrong). "
        "[Records that do not decode]"
        "(../how-to/objects-and-committed-records.md#a-record-that-does-not-decode).",
        sections={
            "All": ("ClientError",),
            "Settings and arguments": ("InvalidSetting", "InvalidRequest", "NotSubscribed"),
            "The cluster": (
                "BrokerError",
                "UnknownTopic",
                "TopicRecreated",
                "BrokerUnreachable",
                "ConnectionLost",
                "RequestTimedOut",
                "UnsupportedVersion",
                "SchedulingUnsupported",
                "TimedOut",
            ),
            "Producing": (
                "DeliveryFailed",
                "DeliveryTimedOut",
                "BufferFull",
                "RecordTooLarge",
                "PartitionerFailed",
                "SchedulingUnsupported",
                "ProducerFailed",
            ),
            "Consuming": (
                "OffsetOutOfRange",
                "LogTruncated",
                "CorruptRecords",
                "DecodeError",
            ),
            "Groups": ("CommitFailed", "GroupFailed", "AssignorFailed"),
            "How a client is used": ("ClientClosed", "ConcurrentUse", "ClientForked"),
        },
        given=(
            "AssignorFailed",
            "BrokerError",
            "BrokerUnreachable",
            "BufferFull",
            "ClientClosed",
            "ClientError",
            "ClientForked",
            "CommitFailed",
            "ConcurrentUse",
            "ConnectionLost",
            "CorruptRecords",
            "DecodeError",
            "DeliveryFailed",
            "DeliveryTimedOut",
            "GroupFailed",
            "InvalidRequest",
            "InvalidSetting",
            "LogTruncated",
            "NotSubscribed",
            "OffsetOutOfRange",
            "PartitionerFailed",
            "ProducerFailed",
            "RecordTooLarge",
            "RequestTimedOut",
            "SchedulingUnsupported",
            "TimedOut",
            "TopicRecreated",
            "UnknownTopic",
            "UnsupportedVersion",
        ),
        shelf="client",
    ),
    Page(
        file="client-arrow.md",
        package="client/arrow",
        see="How to: [Arrow and data frames](../how-to/arrow-and-data-frames.md), which lists the "
        "columns. Settings: [of clients](settings.md#clients). Errors: [tarry.client: errors]"
        "(client-errors.md).",
        sections={
            "Reading": ("ArrowConsumer", "scan"),
            "Writing": ("ArrowProducer", "TableReceipt", "BatchReceipt"),
        },
        given=("TableReceipt", "BatchReceipt"),
        attributes={"ArrowConsumer": (), "ArrowProducer": ()},
        shelf="client",
    ),
    Page(
        file="client-aio.md",
        package="client/aio",
        see="How to: [read and write in asyncio](../how-to/asyncio.md). What is given and "
        "returned, such as `NewTopic` and `RecordGroup`, is on the pages of "
        "[tarry.client](client.md) and [Admin](client-admin.md). Errors: [tarry.client: errors]"
        "(client-errors.md). Settings: "
        "[of clients](settings.md#clients).",
        sections={
            "Producing": ("Producer", "Receipt"),
            "Consuming": ("Consumer", "Listener"),
            "Administering": ("Admin",),
        },
        hidden=(
            "Consumer.hand_out",
            "Producer.acknowledged",
            "Producer.settled",
            "Receipt.batch",
            "Receipt.owner",
        ),
        given=("Receipt",),
        attributes={"Consumer": (), "Producer": (), "Admin": ()},
        shelf="aio",
    ),
)
