"""Pipeliner: client that sends bursts of requests, each in one write, without a wait in between.

Every answer is compared with what a broker that handles one request at a time would give.  No other
client uses its topic and its group.  When it loses its connection, or an answer reports a fault of
the world, it does not know their state any more, and makes new ones.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
    decode_create_topics_response,
)
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    decode_find_coordinator_response,
)
from tarry.protocol.messages.list_offsets import ListOffsetsResponse
from tarry.simulation.clients.context import RunContext
from tarry.simulation.clients.simulated_client import OnAnswer, OnLost, Query, SimulatedClient
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.groups.pipeline_model import GroupPipelineModel
from tarry.simulation.records.pipeline_model import LOST_TRACK, TIMEOUT_MS, BurstStep

_RETRY_MS: Final = 50
_PAUSE_MS_MAX: Final = 200
# Longest wait for the topic of the groups to be made.
_CREATION_MS: Final = 30_000
# Sizes of bursts: real clients have a handful of requests under way, and some of them hundreds.
_BURSTS: Final = (2, 3, 3, 4, 5, 8, 20, 200)
# A larger burst has quick queries and a fetch that waits, before this many of any kind.
_LARGE: Final = 20


class Pipeliner(SimulatedClient):
    """Client that writes bursts of requests and compares the answers with a model."""

    def __init__(
        self, context: RunContext, name: str, *, pause_ms_max: int = _PAUSE_MS_MAX
    ) -> None:
        super().__init__(context, name)
        self.is_patient = True
        self._pause_ms_max = pause_ms_max
        self._number = 0
        self._under_way = 0
        # None while a topic and a group are being made.
        self._model: GroupPipelineModel | None = None

    @property
    def is_done(self) -> bool:
        return self.context.is_quiet and self._under_way == 0

    # --- A topic and a group of one's own.

    def ready(self) -> None:
        if not self.context.is_quiet:
            self._begin()

    def _begin(self) -> None:
        """Begin with a fresh topic and group: late requests for the old ones do no harm."""
        self._number += 1
        self._model = None
        fresh = GroupPipelineModel(
            self.context, f"{self.name}-{self._number}", f"{self.name}-group-{self._number}"
        )
        self._write([(query, _Preparation(self, fresh)) for query in _preparations(fresh)])

    def on_prepared(self, fresh: GroupPipelineModel, answer: Message) -> None:
        """Check the new topic before its use: a disk may have refused its directory."""
        self._under_way -= 1
        if isinstance(answer, CreateTopicsResponse):
            code = answer.topics[0].error_code
        elif isinstance(answer, FindCoordinatorResponse):
            code = answer.error_code
        else:
            assert isinstance(answer, ListOffsetsResponse)
            code = answer.topics[0].partitions[0].error_code
            if code == errors.NONE:
                self._model = fresh
        if code != errors.NONE:
            fresh.is_usable = False
        if self._under_way:
            return
        if self._model is None and fresh.is_usable:
            self._write([(fresh.list_offset().query, _Preparation(self, fresh))])
        else:
            self._act_later()

    # --- Bursts.

    def _act_later(self) -> None:
        pause_ms = _RETRY_MS + self.context.random.randrange(self._pause_ms_max)
        self.context.clock.after(pause_ms, self._act)

    def _act(self) -> None:
        if not self.is_connected or self.context.is_quiet or self._under_way:
            return
        if self._model is None:
            self._begin()
        else:
            self._burst(self._model)

    def _burst(self, alone: GroupPipelineModel) -> None:
        random = self.context.random
        count = _BURSTS[random.randrange(len(_BURSTS))]
        steps: list[BurstStep] = []
        if count > _LARGE:
            quick = [alone.list_offset, alone.look, alone.fetch_offset]
            steps += [quick[random.randrange(len(quick))]() for _ in range(random.randrange(count))]
            steps.append(alone.fetch_at_the_end())
            count = _LARGE
        choices = alone.steps()
        steps += [choices[random.randrange(len(choices))]() for _ in range(count)]
        self._write([(step.query, _BurstAttempt(self, step)) for step in steps])

    def _write(self, asked: list[tuple[Query, _Preparation | _BurstAttempt]]) -> None:
        together: list[tuple[Query, OnAnswer, OnLost]] = []
        for query, hearer in asked:
            if query.is_answer_expected:
                self._under_way += 1
            together.append((query, hearer.on_answer, hearer.on_lost))
        self.ask_together(together)

    def on_stepped(self, step: BurstStep, answer: Message) -> None:
        """Check one answer of a burst."""
        self._under_way -= 1
        alone = self._model
        wrong = "" if alone is None else step.check(answer)
        if wrong == LOST_TRACK:
            self._model = None
        elif wrong:
            self.context.history.violate(f"{wrong} ({self.name} writes requests together)")
        if self._under_way == 0:
            self._act_later()

    def on_lost_one(self) -> None:
        """Lose track of the model: the connection was lost before the answer."""
        self._under_way -= 1
        self._model = None


class _Preparation:
    """Request that makes the topic or the group."""

    def __init__(self, owner: Pipeliner, fresh: GroupPipelineModel) -> None:
        self._owner = owner
        self._fresh = fresh

    def on_answer(self, exchange: ObservedExchange, answer: Message) -> None:
        self._owner.on_prepared(self._fresh, answer)

    def on_lost(self, exchange: ObservedExchange) -> None:
        self._owner.on_lost_one()


class _BurstAttempt:
    """Attempt to send one request of a burst."""

    def __init__(self, owner: Pipeliner, step: BurstStep) -> None:
        self._owner = owner
        self._step = step

    def on_answer(self, exchange: ObservedExchange, answer: Message) -> None:
        self._owner.on_stepped(self._step, answer)

    def on_lost(self, exchange: ObservedExchange) -> None:
        self._owner.on_lost_one()


def _preparations(fresh: GroupPipelineModel) -> list[Query]:
    # A jump of the clock must make no record too new for the topic, or too old for its retention.
    configs = [
        CreatableTopicConfig(name="message.timestamp.after.max.ms", value=str(1 << 62)),
        CreatableTopicConfig(name="retention.ms", value="-1"),
    ]
    topic = CreatableTopic(
        name=fresh.topic, num_partitions=1, replication_factor=1, configs=configs
    )
    creation = CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)
    return [
        Query(
            api_keys.FIND_COORDINATOR,
            3,
            FindCoordinatorRequest(key=fresh.group),
            decode_find_coordinator_response,
            _CREATION_MS,
        ),
        Query(
            api_keys.CREATE_TOPICS,
            fresh.context.version(2, 7),
            creation,
            decode_create_topics_response,
            TIMEOUT_MS,
        ),
    ]
