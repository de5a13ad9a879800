"""Admin: topics, settings and the cluster; each call waits for its answer.

For one thread at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from tarry.base.errors import NONE, UNKNOWN_TOPIC_OR_PARTITION
from tarry.client.core.admin import AdminCore
from tarry.client.core.admin_calls import (
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
from tarry.client.core.call import Call
from tarry.client.core.lookup import FoundOffset, OffsetQuery
from tarry.client.core.metadata import Topic, refusal_text
from tarry.client.core.versions import VersionTable
from tarry.client.errors import BrokerError, ClientError, TimedOut, UnknownTopic
from tarry.client.settings import ClientSettings, SettingValue
from tarry.client.sync.driver import Driver, monotonic_ms, system_random
from tarry.client.sync.exclusive import Exclusive

Place = tuple[str, int]


class Admin:
    """Every call takes `timeout` in seconds; without one it is `default.api.timeout.ms`."""

    def __init__(
        self, settings: Mapping[str, SettingValue] | None = None, **arguments: SettingValue
    ) -> None:
        self.settings = ClientSettings(settings, **arguments)
        self._core = AdminCore(self.settings, system_random(), monotonic_ms())
        self._driver = Driver(self._core, self.settings)
        self._exclusive = Exclusive("an Admin")

    # --- Topics

    def list_topics(self, timeout: float | None = None) -> list[Topic]:
        """All topics by name."""
        found: list[Topic] = self._call(TopicList(None), timeout)
        return found

    def describe_topics(self, names: Iterable[str], timeout: float | None = None) -> list[Topic]:
        """The named topics with their partitions.  Raises UnknownTopic for one that is not there;
        never makes one."""
        wanted = list(names)
        topics: list[Topic] = self._call(TopicList(wanted), timeout)
        for topic in topics:
            if topic.error_code == UNKNOWN_TOPIC_OR_PARTITION:
                raise UnknownTopic(f"topic {topic.name} does not exist")
            if topic.error_code != NONE:
                sentence = refusal_text(topic.name, topic.error_code)
                raise BrokerError(topic.error_code, sentence)
        return topics

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
        outcomes: list[TopicOutcome] = self._call(DeleteTopics(list(names)), timeout)
        return outcomes

    # --- Settings

    def describe_topic_configs(self, topic: str, timeout: float | None = None) -> list[ConfigEntry]:
        entries: list[ConfigEntry] = self._call(DescribeConfigs(RESOURCE_TOPIC, topic), timeout)
        return entries

    def describe_broker_configs(
        self, broker_id: int, timeout: float | None = None
    ) -> list[ConfigEntry]:
        call = DescribeConfigs(RESOURCE_BROKER, str(broker_id))
        entries: list[ConfigEntry] = self._call(call, timeout)
        return entries

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

    # --- Offsets

    def offsets(
        self, wanted: Mapping[Place, int], timeout: float | None = None
    ) -> dict[Place, FoundOffset | ClientError]:
        """Offsets at times (or EARLIEST, LATEST, MAX_TIMESTAMP); an error in place of an offset
        where the leader refused.  Partitions that nobody answered for are TimedOut."""
        query = OffsetQuery(dict(wanted))
        timeout_ms = self._timeout_ms(timeout)
        with self._exclusive:
            self._driver.check_usable()
            self._core.now_ms = monotonic_ms()
            self._core.begin_query(query)
            self._driver.wait(lambda: query.is_done, timeout_ms)
            query.end(self._core.lookup)
        late = TimedOut(f"the leader did not tell its offset within {timeout_ms} ms")
        return {place: query.answers.get(place, late) for place in wanted}

    # --- Waiting

    def _timeout_ms(self, timeout: float | None) -> int:
        return self.settings.api_timeout_ms if timeout is None else int(timeout * 1000)

    # What comes out belongs to the class of the call.
    def _call(self, call: Call, timeout: float | None) -> Any:
        timeout_ms = self._timeout_ms(timeout)
        with self._exclusive:
            self._driver.check_usable()
            self._core.now_ms = monotonic_ms()
            self._core.begin_call(call, timeout_ms)
            # The core gives up by itself at the deadline; the second is for its turn.
            self._driver.wait(lambda: call.is_done, timeout_ms + 1_000)
        if call.error is not None:
            raise call.error
        assert call.is_done
        return call.result

    def close(self) -> None:
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
