"""Fetch exchange: one Fetch request to one broker for several partitions, and its answer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from tarry.base.errors import NONE, error_name
from tarry.base.ids import TopicPartition
from tarry.client.core.consumer.lookup import CONSUMER_ID
from tarry.client.core.consumer.position import NO_END, PartitionPosition
from tarry.client.core.consumer.session import SESSION_ERRORS
from tarry.client.core.topic import ZERO_ID, brokers_of
from tarry.client.errors import ClientClosed
from tarry.link.errors import ClientError
from tarry.link.exchange import VERSION_UNLIMITED, Exchange
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    decode_fetch_response,
)

if TYPE_CHECKING:
    from tarry.client.core.consumer.fetcher import Fetcher

log = logging.getLogger("tarry.client")

# First version that names topics by id only.
VERSION_WITH_IDS: Final = 13


class FetchExchange(Exchange[FetchResponse]):
    """Exchange of one Fetch request."""

    def __init__(self, fetcher: Fetcher, broker_id: int) -> None:
        settings = fetcher.settings
        # The broker may wait this long before it answers.
        timeout_ms = settings.request_timeout_ms + settings.fetch_wait_ms_max
        super().__init__(api_keys.FETCH, decode_fetch_response, timeout_ms)
        self.fetcher = fetcher
        self.broker_id = broker_id
        self.session = fetcher.session_at(broker_id)
        # True if a partition must be read from the leader: the request hides the rack then.
        self._is_for_leader = False
        self._positions: dict[TopicPartition, PartitionPosition] = {}
        self._eras: dict[TopicPartition, int] = {}
        # The topics of a whole fetch; None if the fetch is part of a session.
        self._whole: list[FetchTopic] | None = None

    def add(self, position: PartitionPosition, now_ms: int) -> None:
        self._positions[position.topic, position.partition] = position
        if now_ms < position.leader_only_until_ms:
            self._is_for_leader = True

    def is_answered_at_once(self) -> bool:
        """Return true if a partition is known to have more records, so that the broker answers at
        once."""
        return any(one.readable_end > one.fetch_offset for one in self._positions.values())

    def begin(self) -> None:
        for place, position in self._positions.items():
            self._eras[place] = position.era

    def version_max(self) -> int:
        metadata = self.fetcher.metadata
        for topic, _ in self._positions:
            if metadata.topic_id(topic) == ZERO_ID:
                return VERSION_WITH_IDS - 1
        return VERSION_UNLIMITED

    def build(self, version: int) -> Message:
        settings = self.fetcher.settings
        session = self.session
        topics = self._topics()
        has_ids = version >= VERSION_WITH_IDS
        self._whole = topics
        request = FetchRequest(
            replica_id=CONSUMER_ID,
            max_wait_ms=settings.fetch_wait_ms_max,
            min_bytes=settings.fetch_bytes_min,
            max_bytes=settings.fetch_bytes_max,
            isolation_level=settings.isolation_level,
            topics=topics,
            rack_id="" if self._is_for_leader else settings.rack,
        )
        if session.is_open:
            narrowed = session.narrow(topics, self._positions, has_ids=has_ids)
            if narrowed is None:
                session.lose(is_known=True)
            else:
                request.topics, request.forgotten_topics_data = narrowed
                self._whole = None
        request.session_id = session.session_id
        request.session_epoch = session.epoch
        return request

    def _topics(self) -> list[FetchTopic]:
        """Return the partitions of the request with their present fetch offsets."""
        metadata = self.fetcher.metadata
        bytes_max = self.fetcher.settings.partition_bytes_max
        topics: dict[str, FetchTopic] = {}
        for (name, index), position in self._positions.items():
            topic = topics.get(name)
            if topic is None:
                topic = FetchTopic(name, metadata.topic_id(name))
                topics[name] = topic
            leader = metadata.leader_of(name, index)
            topic.partitions.append(
                FetchPartition(
                    partition=index,
                    current_leader_epoch=leader.leader_epoch if leader is not None else -1,
                    fetch_offset=position.fetch_offset,
                    partition_max_bytes=bytes_max,
                )
            )
        return list(topics.values())

    def on_response(self, response: FetchResponse, now_ms: int) -> None:
        fetcher = self.fetcher
        fetcher.on_request_done(self.broker_id)
        if response.error_code != NONE:
            self._on_refusal(response.error_code, now_ms)
            return
        if self._whole is None:
            self.session.on_answer(response.session_id)
        else:
            has_ids = self.version >= VERSION_WITH_IDS
            self.session.on_whole_answer(
                response.session_id, self._whole, self._positions, has_ids=has_ids
            )
        brokers = brokers_of(response.node_endpoints)
        # A throttled answer is empty although there may be records.
        is_bare = response.throttle_time_ms <= 0
        named: dict[TopicPartition, None] = {}
        for topic in response.responses:
            name = topic.topic or fetcher.metadata.names.get(topic.topic_id, "")
            for answer in topic.partitions:
                if answer.error_code != NONE or answer.records:
                    is_bare = False
                place = (name, answer.partition_index)
                named[place] = None
                position = self._positions.get(place)
                if position is None or fetcher.positions.get(place) is not position:
                    continue
                if self._eras[place] == position.era:
                    fetcher.on_answer(position, answer, self.broker_id, brokers, now_ms)
                elif answer.error_code == NONE and not position.is_void:
                    # A session reports the end of a log only once, and the end holds in every era.
                    fetcher.note_ends(position, answer)
        if is_bare:
            self._on_bare_answer(named, now_ms)

    def _on_bare_answer(self, named: dict[TopicPartition, None], now_ms: int) -> None:
        """Handle an answer without records; inside a session it names only the partitions that
        changed."""
        for position in self._current():
            is_said = self._whole is None or (position.topic, position.partition) in named
            if is_said and position.end_offset != NO_END:
                self.fetcher.on_bare_answer(position, now_ms)

    def _on_refusal(self, code: int, now_ms: int) -> None:
        """Handle an error of the whole answer; after an error of the session, send a whole fetch at
        once."""
        if code in SESSION_ERRORS and self._whole is None:
            log.debug("broker %d ended a fetch session: %s", self.broker_id, error_name(code))
            self.session.fail()
            return
        self.session.lose(is_known=code not in SESSION_ERRORS)
        log.warning("a fetch was refused: %s", error_name(code))
        for position in self._current():
            self.fetcher.pause(position, now_ms)

    def on_failure(self, error: ClientError, now_ms: int) -> None:
        fetcher = self.fetcher
        fetcher.on_request_done(self.broker_id)
        self.session.lose(is_known=True)
        for position in self._current():
            is_replica = position.replica_id == self.broker_id
            if is_replica and not isinstance(error, ClientClosed):
                fetcher.leave_replica(position, str(error), now_ms)
            elif error.is_retriable:
                fetcher.pause(position, now_ms)
            else:
                position.fail(error)

    def _current(self) -> list[PartitionPosition]:
        """Return the positions for which the answer still counts: still assigned, and in the era in
        which the fetch was sent."""
        found: list[PartitionPosition] = []
        for place, position in self._positions.items():
            is_read = self.fetcher.positions.get(place) is position
            if is_read and self._eras[place] == position.era:
                found.append(position)
        return found
