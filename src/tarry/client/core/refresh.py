"""Refresh: requests for metadata.  One request is under way, however many users want it.

While something of a topic in use is missing, pauses grow from `retry.backoff.ms` to
`retry.backoff.max.ms`, whatever the number of users.  If nothing is missing, the next request
follows after `metadata.max.age.ms`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tarry.base.errors import NOT_LEADER_OR_FOLLOWER
from tarry.client.core.connections import Connections
from tarry.client.core.metadata import LeaderHint, Metadata
from tarry.client.core.metadata_answer import (
    MetadataAnswer,
    ReadInSteps,
    read_in_steps,
    read_metadata,
)
from tarry.link.errors import ClientError
from tarry.link.exchange import Exchange
from tarry.link.link import Link
from tarry.link.tasks import Task
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tarry.wire.reader import Reader

# From this version on a request can say that a topic must not be created.
VERSION_NO_CREATE: Final = 4

# If an answer proves wrong within this time, another broker is asked, which may know better.
AGAIN_MS: Final = 10_000

# Number of leaders named by answers that are followed one after the other without a pause.
HOPS_MAX: Final = 3


def metadata_request(
    names: Sequence[str] | None, version: int, *, may_create: bool = False
) -> MetadataRequest:
    """Return a request for topics by name; None asks for all topics."""
    if names is None:
        # In version 0 an empty list asks for all; null came with version 1.
        return MetadataRequest(topics=[] if version == 0 else None)
    return MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names],
        # Older requests cannot forbid that a topic is created.
        allow_auto_topic_creation=may_create or version < VERSION_NO_CREATE,
    )


class Refresh:
    """Requests for metadata; `Metadata` has the answers."""

    def __init__(self, connections: Connections, metadata: Metadata, age_ms_max: int) -> None:
        self.connections = connections
        self.metadata = metadata
        self._age_ms_max = age_ms_max
        self.last_error: ClientError | None = None
        # True if asking for a topic may create it, as a producer wants and a consumer does not.
        self.may_create = False
        self._task = Task(self._ask)
        self._is_in_flight = False
        self._is_wanted_again = False
        self._attempts = 0
        self._asked_ms = -1
        self._asked: Link | None = None
        # Link whose answer proved wrong, so that another broker is asked next.
        self._doubted: Link | None = None
        connections.when_lost = self.want

    def want(self, now_ms: int) -> None:
        """Request new metadata, because something is stale or unknown, as soon as the pause
        allows."""
        if self._is_in_flight:
            self._is_wanted_again = True
            return
        earliest_ms = now_ms
        if self._attempts > 0:
            pause_ms = self.connections.retry_pause_ms(self._attempts)
            earliest_ms = max(now_ms, self._asked_ms + pause_ms)
        self.connections.tasks.schedule_earlier(self._task, earliest_ms)

    def want_after(self, code: int, now_ms: int) -> None:
        """Request new metadata after an error that says that the metadata are stale.

        If the broker that was named as the leader is not the leader, another broker is asked than
        the one that has just named it: a broker that is cut off still names leaders that are gone.
        """
        is_recent = self._asked_ms >= 0 and now_ms - self._asked_ms < AGAIN_MS
        if is_recent and code == NOT_LEADER_OR_FOLLOWER:
            self._doubted = self._asked
        self.want(now_ms)

    def follow(self, hint: LeaderHint) -> bool:
        """Note the leader that an answer names (KIP-951); return false if it is not a newer one."""
        if hint.leader_id < 0:
            return False
        is_newer = self.metadata.set_leader(hint)
        if is_newer and hint.broker is not None:
            self.connections.add_broker(hint.broker.broker_id, hint.broker.address)
        return is_newer

    def _ask(self, now_ms: int) -> None:
        self._is_in_flight = True
        self._is_wanted_again = False
        self._asked_ms = now_ms
        self._attempts += 1
        self._asked = self.connections.for_anyone(now_ms, self._doubted)
        self._doubted = None
        connection = self._asked
        connection.send(_MetadataExchange(self, str(connection)), now_ms)

    def on_answer(self, answer: MetadataAnswer, source: str, now_ms: int) -> None:
        self._is_in_flight = False
        self.last_error = None
        self.metadata.apply(answer, now_ms)
        addresses = {key: one.address for key, one in self.metadata.brokers.items()}
        self.connections.set_brokers(addresses, source, now_ms)
        if self.metadata.needs_refresh:
            # A broker that is cut off may not learn of the topic or leader for as long as that
            # lasts.
            self._doubted = self._asked
        if self.metadata.needs_refresh or self._is_wanted_again:
            self.want(now_ms)
        else:
            self._attempts = 0
            self.connections.tasks.schedule(self._task, now_ms + self._age_ms_max)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self._is_in_flight = False
        self.last_error = error
        self.want(now_ms)


class _MetadataExchange(Exchange[MetadataAnswer]):
    """Exchange of one Metadata request for the topics in use."""

    def __init__(self, refresh: Refresh, source: str) -> None:
        timeout_ms = refresh.connections.settings.request_timeout_ms
        super().__init__(api_keys.METADATA, read_metadata, timeout_ms)
        self.decode_in_steps = self._read_in_steps
        self.refresh = refresh
        self.source = source

    def _read_in_steps(self, reader: Reader, version: int) -> ReadInSteps:
        return read_in_steps(reader, version, self.refresh.metadata.is_kept)

    def build(self, version: int) -> Message:
        metadata = self.refresh.metadata
        names = None if metadata.wants_all else metadata.tracked
        return metadata_request(names, version, may_create=self.refresh.may_create)

    def on_response(self, response: MetadataAnswer, now_ms: int) -> None:
        self.refresh.on_answer(response, self.source, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        self.refresh.on_failure(error, now_ms)
