"""Written by `tools/generate_aio.py` out of `sync/admin`: Admin for asyncio.

All tasks of one event loop may use it, at the same time too.  What several things are asked for in
one call have an outcome each: an error of one stands beside the answers of the others and is not
raised.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self, Unpack

from tarry.base.ids import TopicPartition
from tarry.client.aio.driver import LoopDriver
from tarry.client.core.admin.calls import (
    ClusterDescription,
    ConfigEntry,
    FeatureDescription,
    NewTopic,
    TopicOutcome,
)
from tarry.client.core.admin.configs import ConfigChange
from tarry.client.core.admin.core import AdminCore
from tarry.client.core.admin.epochs import FoundEpochs
from tarry.client.core.admin.groups import GroupDescription, GroupOutcome, ListedGroup
from tarry.client.core.admin.log_dirs import LogDirectory
from tarry.client.core.admin.memory import GroupMemory
from tarry.client.core.admin.offsets import PartitionErrors
from tarry.client.core.admin.partitions import DeletedRecords
from tarry.client.core.admin.producers import DescribedProducers
from tarry.client.core.admin.replicas import Reassignment
from tarry.client.core.admin.requests import AdminRequests
from tarry.client.core.arguments import check_settings
from tarry.client.core.consumer.lookup import FoundOffset
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.operation import Answer
from tarry.client.core.schedule.calendars import ComparedCalendar
from tarry.client.core.schedule.entries import (
    ScheduleCursor,
    ScheduledRecords,
    ScheduleOutcome,
    SchedulePage,
    ScheduleTotals,
)
from tarry.client.core.topic import Topic
from tarry.client.face.chance import SystemRandom
from tarry.client.face.driver import Begin
from tarry.client.face.face import ClientFace
from tarry.client.setting_arguments import ClientArguments
from tarry.client.settings import ClientSettings, SettingValue
from tarry.link.errand import Steps
from tarry.link.errors import ClientError
from tarry.link.versions import VersionTable


class Admin(ClientFace[AdminCore]):
    """Admin client for asyncio; every call takes `timeout` in seconds; without one it is
    `default.api.timeout.ms`.  Whether a change whose call is cancelled took place is not known."""

    _driver: LoopDriver[AdminCore]

    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        **arguments: Unpack[ClientArguments],
    ) -> None:
        check_settings("Admin", settings)
        self.settings = made = ClientSettings(settings, **arguments)
        self._driver = driver = LoopDriver(
            made, lambda driver: AdminCore(made, SystemRandom(), driver.now_ms())
        )
        driver.close_when_forgotten(self, "an Admin")

    @property
    def _requests(self) -> AdminRequests:
        return self._core.requests

    # --- Topics

    async def list_topics(self, timeout: float | None = None) -> list[Topic]:
        """List all topics by name."""
        return await self._ask(self._requests.list_topics(), timeout)

    async def describe_topics(
        self, names: Iterable[str], timeout: float | None = None
    ) -> list[Topic]:
        """Describe the named topics with their partitions.  Raises UnknownTopic for one that is not
        there; never creates one."""
        return await self._ask(self._requests.describe_topics(names), timeout)

    async def find_topics(
        self, names: Iterable[str], timeout: float | None = None
    ) -> dict[str, Topic]:
        """Find those of the named topics that are there, with their partitions."""
        return await self._ask(self._requests.find_topics(names), timeout)

    async def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        outcomes: bool = False,
        timeout: float | None = None,
    ) -> list[TopicOutcome]:
        """Make the topics."""
        steps = self._requests.create_topics(topics, validate_only=validate_only, outcomes=outcomes)
        return await self._ask(steps, timeout)

    async def delete_topics(
        self, names: Iterable[str], timeout: float | None = None, *, outcomes: bool = False
    ) -> list[TopicOutcome]:
        """Delete the topics with their records."""
        return await self._ask(self._requests.delete_topics(names, outcomes=outcomes), timeout)

    async def create_partitions(
        self,
        topic: str,
        count: int,
        *,
        assignment: list[list[int]] | None = None,
        validate_only: bool = False,
        outcomes: bool = False,
        timeout: float | None = None,
    ) -> TopicOutcome:
        """Grow a topic to `count` partitions; an assignment names the brokers of the new ones."""
        steps = self._requests.create_partitions(
            topic, count, assignment, validate_only=validate_only, outcomes=outcomes
        )
        return await self._ask(steps, timeout)

    async def delete_records(
        self,
        offsets: Mapping[TopicPartition, int],
        timeout: float | None = None,
        *,
        outcomes: bool = False,
    ) -> DeletedRecords:
        """Delete what lies before these offsets (TO_THE_END: everything); returns the new first
        offset of each partition, or with `outcomes` its error."""
        return await self._ask(self._requests.delete_records(offsets, outcomes=outcomes), timeout)

    # --- Settings

    async def describe_topic_configs(
        self, topic: str, timeout: float | None = None, *, explain: bool = False
    ) -> list[ConfigEntry]:
        """Describe the settings of a topic; `explain`: with documentation and where each may come
        from."""
        return await self._ask(
            self._requests.describe_topic_configs(topic, explain=explain), timeout
        )

    async def describe_broker_configs(
        self, broker_id: int | None, timeout: float | None = None, *, explain: bool = False
    ) -> list[ConfigEntry]:
        """Describe the settings of a broker; None: the settings that all brokers were given while
        they run."""
        steps = self._requests.describe_broker_configs(broker_id, explain=explain)
        return await self._ask(steps, timeout)

    async def change_topic_configs(
        self,
        topic: str,
        changes: Iterable[ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change settings of a topic, all of them or none; a refusal is raised."""
        steps = self._requests.change_topic_configs(topic, changes, validate_only=validate_only)
        await self._ask(steps, timeout)

    async def change_broker_configs(
        self,
        broker_id: int | None,
        changes: Iterable[ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change settings of one broker, all of them or none; None: of all brokers."""
        steps = self._requests.change_broker_configs(
            broker_id, changes, validate_only=validate_only
        )
        await self._ask(steps, timeout)

    # --- Groups

    async def list_groups(
        self,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> list[ListedGroup]:
        """List the groups of all brokers by id; in one of these states and of one of these
        types."""
        return await self._ask(self._requests.list_groups(states, types), timeout)

    async def describe_groups(
        self, group_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, GroupDescription | ClientError]:
        """Describe groups with their members."""
        return await self._ask(self._requests.describe_groups(group_ids), timeout)

    async def delete_groups(
        self, group_ids: Iterable[str], timeout: float | None = None, *, outcomes: bool = False
    ) -> list[GroupOutcome]:
        """Delete groups without members, with all that they committed."""
        return await self._ask(self._requests.delete_groups(group_ids, outcomes=outcomes), timeout)

    async def group_memory(self, group_id: str, timeout: float | None = None) -> GroupMemory | None:
        """Return what the coordinator remembers of the group's rebalances; None: this broker keeps
        no memory of them, and neither does Apache Kafka."""
        return await self._ask(self._requests.group_memory(group_id), timeout)

    async def group_offsets(
        self,
        group_ids: Iterable[str],
        places: Iterable[TopicPartition] | None = None,
        timeout: float | None = None,
    ) -> dict[str, dict[TopicPartition, CommittedOffset] | ClientError]:
        """Return what groups committed, for these partitions or for all.  Partitions without a
        commit are left out, and a group that is not there has none."""
        return await self._ask(self._requests.group_offsets(group_ids, places), timeout)

    async def commit_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        timeout: float | None = None,
        *,
        outcomes: bool = False,
    ) -> PartitionErrors:
        """Commit in the place of a group that has no members; a group that is not there is made."""
        steps = self._requests.commit_group_offsets(group_id, offsets, outcomes=outcomes)
        return await self._ask(steps, timeout)

    async def delete_group_offsets(
        self,
        group_id: str,
        places: Iterable[TopicPartition],
        timeout: float | None = None,
        *,
        outcomes: bool = False,
    ) -> PartitionErrors:
        """Forget what a group committed for these partitions, of topics that it does not read."""
        steps = self._requests.delete_group_offsets(group_id, places, outcomes=outcomes)
        return await self._ask(steps, timeout)

    # --- The cluster

    async def describe_cluster(self, timeout: float | None = None) -> ClusterDescription:
        """Describe the cluster: its id, its controller and its brokers with their addresses."""
        return await self._ask(self._requests.describe_cluster(), timeout)

    async def compare_calendars(self, timeout: float | None = None) -> list[ComparedCalendar]:
        """Return how far the calendars of brokers are apart, as each has seen those of the brokers
        that it copies from; each half minute they compare.  Brokers that do not answer, and Apache
        Kafka's, are left out.  Scheduled records come early or late by as much after a
        fail-over."""
        return await self._ask(self._requests.compare_calendars(), timeout)

    async def elect_leaders(
        self,
        places: Iterable[TopicPartition] | None = None,
        *,
        unclean: bool = False,
        outcomes: bool = False,
        timeout: float | None = None,
    ) -> PartitionErrors:
        """Elect the preferred leader, the first replica, in these partitions, or in all that it
        does not lead.

        With `unclean`, a replica that is not in sync may lead if no replica in sync is alive, which
        can lose records.  ELECTION_NOT_NEEDED is an outcome that is not raised.
        """
        steps = self._requests.elect_leaders(places, unclean=unclean, outcomes=outcomes)
        return await self._ask(steps, timeout)

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[int] | None],
        timeout: float | None = None,
        *,
        outcomes: bool = False,
    ) -> PartitionErrors:
        """Begin to move partitions to other brokers, the preferred leader first; a target of None
        cancels the reassignment under way."""
        steps = self._requests.alter_partition_reassignments(targets, outcomes=outcomes)
        return await self._ask(steps, timeout)

    async def list_partition_reassignments(
        self, places: Iterable[TopicPartition] | None = None, timeout: float | None = None
    ) -> dict[TopicPartition, Reassignment]:
        """List the reassignments that are under way, of these partitions or of all."""
        return await self._ask(self._requests.list_partition_reassignments(places), timeout)

    async def unregister_broker(self, broker_id: int, timeout: float | None = None) -> None:
        """Remove a broker from the cluster that is stopped and will not come back; raise the error
        of a refusal."""
        await self._ask(self._requests.unregister_broker(broker_id), timeout)

    async def api_versions(
        self, broker_id: int | None = None, timeout: float | None = None
    ) -> VersionTable:
        """Return the versions that a broker takes, by API key; of any broker if none is named."""
        return await self._ask(self._requests.api_versions(broker_id), timeout)

    async def describe_features(
        self, broker_id: int | None = None, timeout: float | None = None
    ) -> list[FeatureDescription]:
        """Describe the features that brokers agree on: which levels are in force, and which the
        broker that is asked knows (any, if none is named)."""
        return await self._ask(self._requests.describe_features(broker_id), timeout)

    async def update_features(
        self,
        levels: Mapping[str, int],
        timeout: float | None = None,
        *,
        may_downgrade: bool = False,
        validate_only: bool = False,
    ) -> None:
        """Bring these levels of features into force, all or none; a refusal is raised."""
        steps = self._requests.update_features(
            levels, may_downgrade=may_downgrade, validate_only=validate_only
        )
        await self._ask(steps, timeout)

    async def describe_log_dirs(
        self, topics: Mapping[str, Sequence[int]] | None = None, timeout: float | None = None
    ) -> list[LogDirectory]:
        """Describe the log directories of all brokers with the sizes of these partitions (None:
        all)."""
        return await self._ask(self._requests.describe_log_dirs(topics), timeout)

    async def describe_producers(
        self, places: Iterable[TopicPartition], timeout: float | None = None
    ) -> DescribedProducers:
        """Describe the idempotent producers that these partitions know, and their open
        transactions; an error in place of the producers where the leader refused, or, before Kafka
        2.8, does not have the question (UnsupportedVersion)."""
        return await self._ask(self._requests.describe_producers(places), timeout)

    # --- Scheduled records

    async def scheduled(
        self,
        topic: str,
        due_from: int | None = None,
        due_until: int | None = None,
        *,
        limit: int = 1000,
        after: ScheduleCursor | None = None,
        partitions: Iterable[int] | None = None,
        with_records: bool = False,
        timeout: float | None = None,
    ) -> SchedulePage:
        """List what waits in a topic and is due from one time on and before another (milliseconds
        since 1970), in that order: a page of `limit` entries, 10,000 at most.

        `after` is `next` of the page before.  `with_records`: each entry with its records.  Raises
        SchedulingUnsupported where the broker is not a Tarry."""
        steps = self._requests.schedules.page(
            topic, due_from, due_until, limit, after, partitions, with_records=with_records
        )
        return await self._ask(steps, timeout)

    async def schedule_totals(
        self,
        topic: str,
        due_from: int | None = None,
        due_until: int | None = None,
        *,
        edges: Sequence[int] = (),
        partitions: Iterable[int] | None = None,
        timeout: float | None = None,
    ) -> ScheduleTotals:
        """Sum up what waits in a topic, also between each two of `edges`, times that ascend."""
        steps = self._requests.schedules.totals(topic, due_from, due_until, edges, partitions)
        return await self._ask(steps, timeout)

    async def find_scheduled(
        self,
        topic: str,
        schedule_id: str | bytes | None = None,
        *,
        partition: int | None = None,
        s_offset: int | None = None,
        timeout: float | None = None,
    ) -> list[ScheduledRecords]:
        """Find what waits by its id, in one partition or all, or by its s-offset; with its
        records."""
        steps = self._requests.schedules.find(topic, schedule_id, partition, s_offset)
        return await self._ask(steps, timeout)

    async def cancel_scheduled(
        self,
        topic: str,
        schedule_id: str | bytes | None = None,
        *,
        partition: int | None = None,
        s_offset: int | None = None,
        timeout: float | None = None,
    ) -> ScheduleOutcome:
        """Cancel what waits by its id, in one partition or all, or by its s-offset in one: it is
        never released.  The outcome stays true whatever happens to brokers."""
        steps = self._requests.schedules.change(
            "cancel_scheduled", topic, schedule_id, partition, s_offset
        )
        return await self._ask(steps, timeout)

    async def move_scheduled(
        self,
        topic: str,
        due_ms: int,
        schedule_id: str | bytes | None = None,
        *,
        partition: int | None = None,
        s_offset: int | None = None,
        timeout: float | None = None,
    ) -> ScheduleOutcome:
        """Let what waits be due at another time, milliseconds since 1970; at once if that has
        passed."""
        steps = self._requests.schedules.move(topic, due_ms, schedule_id, partition, s_offset)
        return await self._ask(steps, timeout)

    # --- Offsets

    async def offsets(
        self,
        wanted: Mapping[TopicPartition, int],
        timeout: float | None = None,
        *,
        read_committed: bool = False,
    ) -> dict[TopicPartition, FoundOffset | ClientError]:
        """Look up offsets at times (or EARLIEST, LATEST, MAX_TIMESTAMP); an error in place of an
        offset where the leader refused.  Partitions for which no broker answered are TimedOut.

        `read_committed`: as those see it who read only what is committed."""
        begin = partial(self._core.begin_offsets, wanted, read_committed=read_committed)
        return await self._wait_for(begin, timeout)

    async def epoch_ends(
        self,
        epochs: Mapping[TopicPartition, int],
        leader_epochs: Mapping[TopicPartition, int] | None = None,
        timeout: float | None = None,
    ) -> FoundEpochs:
        """Look up where leader epochs end in the logs; the value is an error if the leader refused.

        A reader compares the end with its position: a smaller end shows that records it has read
        were lost.  `leader_epochs` are the epochs in which the leaders are expected: a leader of a
        newer epoch refuses (FENCED_LEADER_EPOCH).
        """
        return await self._ask(self._requests.epoch_ends(epochs, leader_epochs), timeout)

    async def _ask(self, steps: Steps[Answer], timeout: float | None) -> Answer:
        return await self._wait_for(partial(self._core.begin_errand, steps), timeout)

    async def _wait_for(self, begin: Begin[Answer], timeout: float | None) -> Answer:
        return await self._driver.perform(begin, timeout, self.settings.api_timeout_ms)

    async def close(self) -> None:
        """Close; calls under way in other tasks raise ClientClosed."""
        driver = self._driver
        driver.check_parent()
        if not driver.is_closed and not driver.is_stranded:
            driver.check_here()
        driver.close()
        await driver.settle()

    async def __aenter__(self) -> Self:
        self._driver.check_usable()
        return self

    async def __aexit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error_type is None or not self._driver.is_forked:
            await self.close()
