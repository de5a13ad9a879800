"""Admin: topics, settings, groups and the cluster; each call waits for its answer.

For one thread at a time.  What several things are asked for in one call have an outcome each: an
error of one stands beside the answers of the others and is not raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import SystemRandom
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

from tarry.base.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from tarry.client.core.admin.calls import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    ApiVersions,
    ClusterDescription,
    ConfigEntry,
    CreateTopics,
    DeleteTopics,
    DescribeCluster,
    DescribeConfigs,
    NewTopic,
    TopicList,
    TopicOutcome,
)
from tarry.client.core.admin.configs import ChangeConfigs, ConfigChange
from tarry.client.core.admin.core import AdminCore, one_call
from tarry.client.core.admin.groups import (
    GroupDescription,
    GroupOutcome,
    ListedGroup,
    delete_groups,
    describe_groups,
    list_groups,
)
from tarry.client.core.admin.log_dirs import LogDirectory, describe_log_dirs
from tarry.client.core.admin.memory import GroupMemory, recall_group
from tarry.client.core.admin.offsets import (
    PartitionErrors,
    commit_offsets,
    delete_offsets,
    fetch_offsets,
)
from tarry.client.core.admin.partitions import CreatePartitions, DeletedRecords, delete_records
from tarry.client.core.arguments import check_settings, names_of, offsets_of, places_of
from tarry.client.core.consumer.lookup import FoundOffset
from tarry.client.core.group.assignment.consumer_protocol import Place
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.metadata import Topic, refusal_text
from tarry.client.core.operation import Answer, Operation
from tarry.client.errors import BrokerError, UnknownTopic
from tarry.client.setting_arguments import ClientArguments
from tarry.client.settings import ClientSettings, SettingValue
from tarry.client.sync.clock import monotonic_ms
from tarry.client.sync.driver import Driver, Tell
from tarry.client.sync.exclusive import Exclusive
from tarry.link.errand import Call, Steps
from tarry.link.errors import ClientError
from tarry.link.versions import VersionTable

Asked = TypeVar("Asked")


class Admin:
    """Every call takes `timeout` in seconds; without one it is `default.api.timeout.ms`."""

    def __init__(
        self,
        settings: Mapping[str, SettingValue] | None = None,
        **arguments: Unpack[ClientArguments],
    ) -> None:
        check_settings("Admin", settings)
        self.settings = made = ClientSettings(settings, **arguments)
        self._driver = Driver(made, lambda driver: AdminCore(made, SystemRandom(), monotonic_ms()))
        self._exclusive = Exclusive("an Admin")
        # Called again and again while a call waits, with why the cluster cannot be reached (""
        # if nothing seems wrong), and with None when the wait is over.
        self.on_wait: Tell | None = None

    # --- Topics

    def list_topics(self, timeout: float | None = None) -> list[Topic]:
        """All topics by name."""
        found: list[Topic] = self._call(TopicList(None), timeout)
        return found

    def describe_topics(self, names: Iterable[str], timeout: float | None = None) -> list[Topic]:
        """The named topics with their partitions.  Raises UnknownTopic for one that is not there;
        never makes one."""
        wanted = names_of("describe_topics", names)
        topics: list[Topic] = self._call(TopicList(wanted), timeout)
        for topic in topics:
            if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(f"topic {topic.name!r} does not exist")
            if topic.error_code != NONE:
                sentence = refusal_text(topic.name, topic.error_code)
                raise BrokerError(topic.error_code, sentence)
        return topics

    def find_topics(self, names: Iterable[str], timeout: float | None = None) -> dict[str, Topic]:
        """Those of the named topics that are there, with their partitions."""
        wanted = list(dict.fromkeys(names_of("find_topics", names)))
        if not wanted:
            return {}
        topics: list[Topic] = self._call(TopicList(wanted), timeout)
        return {topic.name: topic for topic in topics if topic.partitions}

    def create_topics(
        self,
        topics: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> list[TopicOutcome]:
        """Make the topics; each outcome has its own error or none."""
        call = CreateTopics(list(topics), validate_only=validate_only)
        outcomes: list[TopicOutcome] = self._call(call, timeout)
        return outcomes

    def delete_topics(
        self, names: Iterable[str], timeout: float | None = None
    ) -> list[TopicOutcome]:
        outcomes: list[TopicOutcome] = self._call(
            DeleteTopics(names_of("delete_topics", names)), timeout
        )
        return outcomes

    def create_partitions(
        self,
        topic: str,
        count: int,
        *,
        assignment: list[list[int]] | None = None,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> TopicOutcome:
        """Grow a topic to `count` partitions; an assignment names the brokers of the new ones."""
        call = CreatePartitions(topic, count, assignment, validate_only=validate_only)
        outcome: TopicOutcome = self._call(call, timeout)
        return outcome

    def delete_records(
        self, offsets: Mapping[Place, int], timeout: float | None = None
    ) -> DeletedRecords:
        """Delete what lies before these offsets (TO_THE_END: everything); the new first offset of
        each partition, or its error."""
        return self._errand(delete_records(self._driver.core.connections, dict(offsets)), timeout)

    # --- Settings

    def describe_topic_configs(
        self, topic: str, timeout: float | None = None, *, explain: bool = False
    ) -> list[ConfigEntry]:
        """The settings of a topic; `explain`: with documentation and where each may come from."""
        call = DescribeConfigs(RESOURCE_TOPIC, topic, explain=explain)
        entries: list[ConfigEntry] = self._call(call, timeout)
        return entries

    def describe_broker_configs(
        self, broker_id: int | None, timeout: float | None = None, *, explain: bool = False
    ) -> list[ConfigEntry]:
        """The settings of a broker; None: what is set for all brokers while they run."""
        call = DescribeConfigs(RESOURCE_BROKER, _name_of(broker_id), explain=explain)
        entries: list[ConfigEntry] = self._call(call, timeout)
        return entries

    def change_topic_configs(
        self,
        topic: str,
        changes: Iterable[ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """Change settings of a topic, all of them or none; a refusal is raised."""
        call = ChangeConfigs(RESOURCE_TOPIC, topic, list(changes), validate_only=validate_only)
        self._call(call, timeout)

    def change_broker_configs(
        self,
        broker_id: int | None,
        changes: Iterable[ConfigChange],
        *,
        validate_only: bool = False,
        timeout: float | None = None,
    ) -> None:
        """The same for one broker; None: for all of them."""
        name = _name_of(broker_id)
        call = ChangeConfigs(RESOURCE_BROKER, name, list(changes), validate_only=validate_only)
        self._call(call, timeout)

    # --- Groups

    def list_groups(
        self,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> list[ListedGroup]:
        """The groups of all brokers by id; in one of these states and of one of these types."""
        steps = list_groups(self._driver.core.connections, list(states), list(types))
        return self._errand(steps, timeout)

    def describe_groups(
        self, group_ids: Iterable[str], timeout: float | None = None
    ) -> dict[str, GroupDescription | ClientError]:
        """Groups with their members."""
        return self._errand(
            describe_groups(self._driver.core.connections, names_of("describe_groups", group_ids)),
            timeout,
        )

    def delete_groups(
        self, group_ids: Iterable[str], timeout: float | None = None
    ) -> list[GroupOutcome]:
        """Delete groups without members, with all that they committed."""
        steps = delete_groups(self._driver.core.connections, names_of("delete_groups", group_ids))
        return [GroupOutcome(*item) for item in self._errand(steps, timeout).items()]

    def group_memory(self, group_id: str, timeout: float | None = None) -> GroupMemory | None:
        """What the coordinator remembers of the group's rebalances; None: this broker keeps no
        memory of them, as Apache Kafka does not."""
        answers = self._errand(recall_group(self._driver.core.connections, group_id), timeout)
        return _of_group(answers, group_id)

    def group_offsets(
        self,
        group_ids: Iterable[str],
        places: Iterable[Place] | None = None,
        timeout: float | None = None,
    ) -> dict[str, dict[Place, CommittedOffset] | ClientError]:
        """What groups committed: of these partitions, or all of it.  Partitions without a commit
        are left out, and a group that is not there has none."""
        wanted = None if places is None else places_of("group_offsets", places)
        steps = fetch_offsets(
            self._driver.core.connections, names_of("group_offsets", group_ids), wanted
        )
        return self._errand(steps, timeout)

    def commit_group_offsets(
        self, group_id: str, offsets: Mapping[Place, int], timeout: float | None = None
    ) -> PartitionErrors:
        """Commit in the place of a group that has no members; a group that is not there is made."""
        steps = commit_offsets(
            self._driver.core.connections, group_id, offsets_of("commit_group_offsets", offsets)
        )
        return _of_group(self._errand(steps, timeout), group_id)

    def delete_group_offsets(
        self, group_id: str, places: Iterable[Place], timeout: float | None = None
    ) -> PartitionErrors:
        """Forget what a group committed for these partitions, of topics that it does not read."""
        steps = delete_offsets(
            self._driver.core.connections, group_id, places_of("delete_group_offsets", places)
        )
        return _of_group(self._errand(steps, timeout), group_id)

    # --- The cluster

    def describe_cluster(self, timeout: float | None = None) -> ClusterDescription:
        description: ClusterDescription = self._call(DescribeCluster(), timeout)
        return description

    def api_versions(
        self, broker_id: int | None = None, timeout: float | None = None
    ) -> VersionTable:
        """The versions that a broker takes, by API key; of any broker if none is named."""
        call = ApiVersions() if broker_id is None else ApiVersions(broker_id)
        table: VersionTable = self._call(call, timeout)
        return table

    def describe_log_dirs(
        self, topics: Mapping[str, Sequence[int]] | None = None, timeout: float | None = None
    ) -> list[LogDirectory]:
        """The log directories of all brokers with the sizes of these partitions (None: all)."""
        return self._errand(describe_log_dirs(self._driver.core.connections, topics), timeout)

    # --- Offsets

    def offsets(
        self, wanted: Mapping[Place, int], timeout: float | None = None
    ) -> dict[Place, FoundOffset | ClientError]:
        """Offsets at times (or EARLIEST, LATEST, MAX_TIMESTAMP); an error in place of an offset
        where the leader refused.  Partitions that nobody answered for are TimedOut."""
        return self._perform(AdminCore.begin_offsets, wanted, timeout)

    # --- Waiting

    def _perform(
        self,
        begin: Callable[[AdminCore, Asked, int, int], Operation[Answer]],
        asked: Asked,
        timeout: float | None,
    ) -> Answer:
        timeout_ms = self.settings.api_timeout_ms if timeout is None else int(timeout * 1000)
        with self._exclusive:
            return self._driver.perform(
                lambda core, now_ms: begin(core, asked, timeout_ms, now_ms), tell=self.on_wait
            )

    def _errand(self, steps: Steps[Answer], timeout: float | None) -> Answer:
        return self._perform(AdminCore.begin_errand, steps, timeout)

    # Any: what comes out belongs to the class of the call.
    def _call(self, call: Call[Any, Any], timeout: float | None) -> Any:
        return self._errand(one_call(call), timeout)

    def close(self) -> None:
        self._driver.close()

    def __repr__(self) -> str:
        return self._driver.describe(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _name_of(broker_id: int | None) -> str:
    return "" if broker_id is None else str(broker_id)


def _of_group(answers: Mapping[str, Answer | ClientError], group_id: str) -> Answer:
    """The answer about the one group that was asked for."""
    answer = answers[group_id]
    if isinstance(answer, ClientError):
        raise answer
    return answer
