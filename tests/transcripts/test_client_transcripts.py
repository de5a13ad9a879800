"""Members of groups as transcripts: what the user does, what the coordinator hears and answers.

A line that begins with `>` is a command; the indented lines below it are what happened, each with
its time in ms.  `TARRY_REWRITE=1 pytest tests/transcripts` writes what happens into the files
instead of comparing it; read the difference before it is committed.

    > set KEY=VALUE ..                 before the first other command
    > own [FLAW]          an assignor of the user: right, raises or forgets (a partition)
    > topic NAME PARTITIONS            it is there, or has so many partitions from now on
    > delete NAME                      the topic is gone
    > records NAME-PARTITION COUNT     more records in the log
    > committed NAME-PARTITION=OFFSET  where the group stands
    > subscribe NAME ..   > pattern P   > unsubscribe
    > poll MS             for as long; what is handed out, told and raised
    > work MS             the user works on records, and only the keeper turns the client
    > sleep MS            the process is stopped
    > commit [NAME-PARTITION=OFFSET[:METADATA]]   > async, alike, without a wait
    > told PLACE ..       what the group has committed there
    > close [leave] [TIMEOUT_MS]
    > next API WORD ..    the next answers: an error, a delay in ms, both (500:NONE), or silence
    > follow [PLACES]     another member leads and gives this; without places: none; > lead
    > member NAME TOPICS [OWNED]       another member of the group that we lead; > gone NAME
    > move BROKER         another broker is the coordinator
    > cut, refuse, accept connections are cut; refused; taken again
    > listener WORD       the callbacks from now on: quiet, raises, commits,
                        works MS, works-and-commits MS
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.client.client_coordinator import ClientCoordinator, places_text
from tests.support.client.scripted_cluster import ScriptedCluster, seeded_random

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.assignor import Assignor
from tarry.client.core.group.assignment.assignors import assign_range
from tarry.client.core.group.assignment.consumer_protocol import SubscribedMember, Subscription
from tarry.client.core.group.consumer import GroupConsumerCore
from tarry.client.core.group.events import GroupEvent
from tarry.client.core.group.membership import STATE_NAMES
from tarry.client.core.group.offsets.commit import Commit
from tarry.client.core.group.offsets.requests import CommittedOffset
from tarry.client.core.group.poll import Poll
from tarry.client.core.operation import Answer, Callback, Done, Operation
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import ClientError

FILES = sorted(Path(__file__).with_name("client").glob("*.txt"))
REWRITES = os.environ.get("TARRY_REWRITE") == "1"

DEFAULTS = {"bootstrap.servers": "10.0.0.1:9092", "group.id": "g", "auto.offset.reset": "earliest"}


class Player:
    """Plays a transcript as a user would, and gathers what happens."""

    def __init__(self) -> None:
        self.cluster = ScriptedCluster(brokers=2)
        self.coordinator = ClientCoordinator(self.cluster, self.say)
        self.settings: dict[str, Any] = dict(DEFAULTS)
        self.lines: list[str] = []
        self.listener = ["quiet"]
        self.assignors: list[Assignor | str] | None = None
        self.flaw = "right"
        self.began_ms = self.cluster.now_ms
        self.state = ""
        self._core: GroupConsumerCore | None = None

    @property
    def core(self) -> GroupConsumerCore:
        if self._core is None:
            settings = ConsumerSettings(self.settings)
            made = GroupConsumerCore(settings, seeded_random(), self.cluster.now_ms, self.assignors)
            self._core = self.cluster.attach(made)
        assert self._core is not None
        return self._core

    def play(self, command: str) -> list[str]:
        """Carry out one command; what happened."""
        self.lines = []
        verb, *words = command.split()
        getattr(self, f"do_{verb}")(words)
        return [f"  {line}" for line in self.lines]

    def say(self, text: str) -> None:
        self.lines.append(f"[{self.cluster.now_ms - self.began_ms}] {text}")

    def look(self) -> None:
        """Say a new state; asked after each turn."""
        state = STATE_NAMES[self.core.membership.state]
        if state != self.state:
            self.state = state
            self.say(f"state: {state}")

    # -- the world

    def do_set(self, words: list[str]) -> None:
        assert self._core is None
        self.settings.update(word.split("=", 1) for word in words)

    def do_own(self, words: list[str]) -> None:
        self.flaw = words[0]
        self.assignors = [Assignor("own", self.assign)]

    def assign(
        self, members: Sequence[SubscribedMember], counts: Mapping[str, int]
    ) -> dict[str, list[TopicPartition]]:
        given = assign_range(members, counts)
        if self.flaw == "raises":
            raise ZeroDivisionError("in an assignor")
        if self.flaw == "forgets":
            given[members[0].member_id].pop()
        return given

    def do_topic(self, words: list[str]) -> None:
        name, count = words
        known = self.cluster.topics.get(name)
        if known is None:
            self.cluster.topic(name, int(count))
        else:
            made = self.cluster.topic("made", int(count) - len(known.logs))
            known.logs += made.logs
            del self.cluster.topics["made"]

    def do_delete(self, words: list[str]) -> None:
        del self.cluster.topics[words[0]]

    def do_records(self, words: list[str]) -> None:
        topic, index = place_of(words[0])
        self.cluster.topics[topic].logs[index].add(*[b"x"] * int(words[1]))

    def do_committed(self, words: list[str]) -> None:
        for place, offset in offsets_of(words).items():
            self.coordinator.committed[place] = offset

    def do_next(self, words: list[str]) -> None:
        self.coordinator.next_codes.setdefault(words[0], deque()).extend(words[1:])

    def do_follow(self, words: list[str]) -> None:
        self.coordinator.given = [place_of(word) for word in words]

    def do_lead(self, words: list[str]) -> None:
        self.coordinator.given = None

    def do_member(self, words: list[str]) -> None:
        owned = [place_of(word) for word in words[2].split(",")] if len(words) > 2 else []
        generation_id = self.coordinator.generation_id if owned else -1
        said = Subscription(words[1].split(","), None, owned, generation_id)
        self.coordinator.others[words[0]] = said

    def do_gone(self, words: list[str]) -> None:
        del self.coordinator.others[words[0]]

    def do_move(self, words: list[str]) -> None:
        self.coordinator.broker_id = int(words[0])

    def do_cut(self, words: list[str]) -> None:
        for broker_id in self.cluster.brokers:
            self.cluster.cut(broker_id)

    def do_refuse(self, words: list[str]) -> None:
        self.do_cut(words)
        for address in self.cluster.brokers.values():
            self.cluster.refused[address] = "connection refused"

    def do_accept(self, words: list[str]) -> None:
        self.cluster.refused.clear()

    # -- the user

    def do_listener(self, words: list[str]) -> None:
        self.listener = words

    def do_subscribe(self, words: list[str]) -> None:
        self.core.subscribe(words)

    def do_pattern(self, words: list[str]) -> None:
        self.core.subscribe(re.compile(words[0]))

    def do_unsubscribe(self, words: list[str]) -> None:
        self.core.unsubscribe()

    def do_assign(self, words: list[str]) -> None:
        self.core.assign([place_of(word) for word in words])

    def do_poll(self, words: list[str]) -> None:
        end_ms = self.cluster.now_ms + int(words[0])
        poll = self.core.begin_poll(500, int(words[0]), self.cluster.now_ms)
        try:
            while True:
                for group in self.perform(poll):
                    first, last = group.records[0].offset, group.records[-1].offset
                    self.say(f"{group.topic}-{group.partition} handed out from {first} to {last}")
                if self.cluster.now_ms >= end_ms:
                    return
        except (ClientError, ZeroDivisionError) as error:
            self.say(f"poll raises {type(error).__name__}: {error}")
        finally:
            poll.end(self.cluster.now_ms)

    def run_until(self, is_done: Callable[[], bool], limit_ms: int = 300_000) -> None:
        def is_over() -> bool:
            self.look()
            return is_done()

        self.cluster.run_until(is_over, limit_ms, must=False)
        self.look()

    def perform(self, operation: Operation[Answer]) -> Answer:
        while True:
            step = operation.step(self.cluster.now_ms)
            if isinstance(step, Done):
                return step.answer
            if isinstance(step, Callback):
                if isinstance(operation, Poll):
                    self.say_why(operation.commit)
                raised = self.call_back(step)
                operation.end_callback(self.cluster.now_ms, raised)
            else:
                self.run_until(lambda: operation.is_ready)

    def call_back(self, callback: Callback) -> Exception | None:
        event = callback.event
        if not isinstance(event, GroupEvent):
            callback.call(None, None)
            return None
        self.say(f"{event.callback} {places_text(event.places)}")
        word, *words = self.listener
        if word == "raises":
            return ZeroDivisionError("in a callback")
        if word.startswith("works"):
            self.do_work(words)
        if word.endswith("commits"):
            self.do_commit([])
        return None

    def do_commit(self, words: list[str]) -> None:
        pending = self.core.begin_commit(offsets_of(words) or None, 10_000, self.cluster.now_ms)
        with contextlib.suppress(ClientError):
            self.perform(pending)
        self.say_why(pending.commit)
        pending.end(self.cluster.now_ms)

    def do_async(self, words: list[str]) -> None:
        def hear(offsets: dict[TopicPartition, CommittedOffset], error: ClientError | None) -> None:
            told = [f"{topic}-{index}={one.offset}" for (topic, index), one in offsets.items()]
            self.say(f"callback of {', '.join(told)}: {error or 'committed'}")

        self.core.commit_async(offsets_of(words) or None, hear, self.cluster.now_ms)
        # A face turns once, so that the request leaves.
        self.cluster.run_for(0)

    def do_told(self, words: list[str]) -> None:
        places = [place_of(word) for word in words]
        query = self.core.begin_committed(places, 10_000, self.cluster.now_ms)
        for (topic, index), one in self.perform(query).items():
            told = "nothing" if one is None else f"{one.offset} {one.leader_epoch} {one.metadata!r}"
            self.say(f"{topic}-{index} has {told}")
        query.end(self.cluster.now_ms)

    def say_why(self, commit: Commit | None) -> None:
        if commit is not None and commit.error is not None:
            retriable = ", retriable" if commit.error.is_retriable else ""
            self.say(f"{type(commit.error).__name__}{retriable}: {commit.error}")

    def do_work(self, words: list[str]) -> None:
        end_ms = self.cluster.now_ms + int(words[0])
        while self.core.consumer_settings.has_keeper:
            due_ms = self.core.keeper_due_ms
            if due_ms is None or due_ms > end_ms:
                break
            self.cluster.now_ms = max(due_ms, self.cluster.now_ms)
            before_ms = self.cluster.now_ms
            self.run_until(self.is_kept, min(end_ms - before_ms, 10_000))
            if self.cluster.now_ms >= end_ms:
                break
        self.cluster.now_ms = end_ms

    def is_kept(self) -> bool:
        due_ms = self.core.keeper_due_ms
        return due_ms is None or due_ms > self.cluster.now_ms

    def do_sleep(self, words: list[str]) -> None:
        self.cluster.now_ms += int(words[0])

    def do_finish(self, words: list[str]) -> None:
        self.core.finish_handed_out()

    def do_close(self, words: list[str]) -> None:
        leave = True if "leave" in words else None
        timeout_ms = next((int(word) for word in words if word.isdigit()), 5_000)
        now_ms = self.cluster.now_ms
        closing = self.core.begin_close(timeout_ms, now_ms, leave=leave)
        try:
            self.perform(closing)
        except ZeroDivisionError as error:
            self.say(f"close raises {type(error).__name__}: {error}")
        self.say_why(closing.commit)
        closing.end(self.cluster.now_ms)


def place_of(text: str) -> TopicPartition:
    topic, _, index = text.rpartition("-")
    return topic, int(index)


def offsets_of(words: list[str]) -> dict[TopicPartition, CommittedOffset]:
    offsets = {}
    for word in words:
        place, _, told = word.partition("=")
        offset, _, metadata = told.partition(":")
        offsets[place_of(place)] = CommittedOffset(int(offset), metadata=metadata)
    return offsets


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_transcript_of_a_member_plays_as_it_is_written(path: Path) -> None:
    player = Player()
    played: list[str] = []
    written = path.read_text("utf-8")
    for line in written.splitlines():
        if line.startswith(">"):
            played += [line, *player.play(line[1:])]
        elif not line.startswith("  "):
            played.append(line)
    text = "\n".join(played) + "\n"
    if REWRITES:
        path.write_text(text, "utf-8")
    else:
        assert text == written


def test_every_transcript_of_a_member_says_what_it_shows_and_shows_something() -> None:
    assert len(FILES) >= 30
    for path in FILES:
        lines = path.read_text("utf-8").splitlines()
        assert lines[0].startswith("# ")
        assert any(line.startswith("  [") for line in lines)
