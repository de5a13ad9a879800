"""A process that may open few files: many logs are written and flushed by parts, none is lost."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import User, a_batch, produced, values_in

from tarry.base import errors
from tarry.base.doors import LogFile
from tarry.base.errors import TooManyOpenFiles
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import PartitionProduceResponse
from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.disk import SimulatedDisk, SimulatedFile

VERSION = 11
MANY = 1_000


class SmallDisk:
    """A simulated disk that takes so many directories in a flush, and holds so many open files."""

    def __init__(self, disk: SimulatedDisk) -> None:
        self.disk = disk
        self.directories_max = MANY
        self.files_max = MANY
        self.open_paths: dict[str, None] = {}
        self.flushed_directories: list[int] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self.disk, name)

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        if path.endswith(".log"):
            if path not in self.open_paths and len(self.open_paths) >= self.files_max:
                raise TooManyOpenFiles(f"{path}: too many files are open")
            self.open_paths[path] = None
        return self.disk.open(path, create=create)

    def begin_flush(self, files: list[LogFile], directories: list[str]) -> int:
        if len(directories) > self.directories_max:
            raise TooManyOpenFiles(f"{directories[-1]}: too many files are open")
        self.flushed_directories.append(len(directories))
        return self.disk.begin_flush(files, directories)


def small(hand: BrokerByHand) -> SmallDisk:
    """The broker's disk, which is small from now on."""
    disk = SmallDisk(hand.disk)
    for owner in (hand.broker, hand.broker.flushes, hand.broker.logs, hand.broker.logs.files):
        owner.disk = disk  # type: ignore[assignment]
    return disk


def a_user_of_many(
    partitions: int, texts: dict[str, str] | None = None
) -> tuple[BrokerByHand, User, SmallDisk]:
    """A broker with the topic `many`, whose process may open few files from now on."""
    hand = BrokerByHand(texts)
    user = User(hand)
    user.create("many", partitions=partitions)
    return hand, user, small(hand)


def produce_to_all(user: User, partitions: int) -> list[PartitionProduceResponse]:
    """A record to each partition in one request, until it is answered."""
    batches = [a_batch(b"%d" % index) for index in range(partitions)]
    request = user.produce_request(*batches, topic="many")
    return produced(user.client.ask(api_keys.PRODUCE, VERSION, request))


def test_a_round_that_would_open_too_many_directories_is_parted() -> None:
    hand, user, disk = a_user_of_many(20)
    disk.directories_max = 6

    answers = produce_to_all(user, 20)
    hand.crash()

    assert [answer.error_code for answer in answers] == [errors.NONE] * 20
    assert max(disk.flushed_directories) <= 6
    found = User(hand).fetch_all(*[0] * 20, topic="many")
    assert [values_in(one) for one in found] == [[b"%d" % index] for index in range(20)]


def test_a_flush_that_cannot_begin_waits_without_spinning_and_loses_nothing() -> None:
    hand, user, disk = a_user_of_many(3)
    disk.directories_max = 0

    request = user.produce_request(a_batch(b"a"), a_batch(b"b"), a_batch(b"c"), topic="many")
    user.client.send(api_keys.PRODUCE, VERSION, request)
    for _ in range(3):
        hand.turn(after_ms=400)
    has_work_left = hand.broker.has_work_left()
    early = user.answers()
    disk.directories_max = MANY
    hand.turn(after_ms=400)
    hand.settle()

    assert not hand.broker.is_stopped
    assert not has_work_left
    assert early == []
    assert [answer.error_code for answer in produced(user.answers()[0])] == [errors.NONE] * 3
    assert not any(one.log.is_dirty for one in hand.broker.topics.partitions())


@pytest.mark.parametrize("first", [0, 2])
def test_a_log_that_needs_a_directory_holds_back_no_other(first: int) -> None:
    hand, user, disk = a_user_of_many(3)
    produce_to_all(user, 3)
    user.create("new")
    disk.directories_max = 0
    requests = [
        user.produce_request(a_batch(b"b"), topic="new"),
        user.produce_request(*[a_batch(b"a")] * 3, topic="many"),
    ]
    clients = [hand.connect(), hand.connect()]

    for number in (0, 1) if first == 0 else (1, 0):
        clients[number].send(api_keys.PRODUCE, VERSION, requests[number])
    for _ in range(3):
        hand.turn(*hand.disk.complete_flushes(), after_ms=400)
    early = [len(each.answers()) for each in clients]
    disk.directories_max = MANY
    for _ in range(2):
        hand.turn(*hand.disk.complete_flushes(), after_ms=400)

    assert early == [0, 1]
    (answer,) = clients[0].answers()
    assert produced(answer)[0].error_code == errors.NONE


@pytest.mark.parametrize("files_max", [0, 2])
def test_a_flush_may_have_to_open_files_and_waits_for_them(files_max: int) -> None:
    """A write that found no descriptor has left its log to flush, and no open file."""
    hand, user, disk = a_user_of_many(3)
    produce_to_all(user, 3)
    disk.files_max = files_max
    hand.broker.logs.files.open_files_max = 0
    hand.broker.logs.files.trim()
    disk.open_paths.clear()
    partitions = hand.broker.topics.partitions()
    for each in partitions:
        each.log.unflushed.note_undone_write(each.log.active)
        hand.broker.flushes.ask_for(each)

    for _ in range(3):
        hand.turn(*hand.disk.complete_flushes(), after_ms=400)
    clean = [each.log.is_dirty for each in partitions].count(False)
    disk.files_max = MANY
    hand.turn(after_ms=400)
    hand.settle()

    assert not hand.broker.is_stopped
    assert clean == files_max
    assert not any(each.log.is_dirty for each in partitions)


def test_a_log_that_cannot_be_opened_is_refused_and_opened_when_others_are_flushed() -> None:
    """With flush.policy=os no flush is due by itself, so a refused write has to ask for one."""
    hand, user, disk = a_user_of_many(6, {"flush.policy": "os"})
    disk.files_max = 4

    first = produce_to_all(user, 6)
    dirty = [
        one.leadership.index
        for one in hand.broker.topics.partitions()
        if one.log.has_unflushed_bytes
    ]
    disk.files_max = MANY
    again = produce_to_all(user, 6)

    refused = errors.KAFKA_STORAGE_ERROR
    assert [answer.error_code for answer in first] == [errors.NONE] * 4 + [refused] * 2
    assert dirty == []
    assert [answer.error_code for answer in again] == [errors.NONE] * 6
    assert [answer.base_offset for answer in again] == [1, 1, 1, 1, 0, 0]


def test_a_refused_log_holds_no_file_of_its_identity() -> None:
    hand, user, disk = a_user_of_many(2)
    disk.files_max = 1

    produce_to_all(user, 2)
    identity = hand.broker.topics["many"].partitions[1].log.identity
    held, is_missing = identity.file, identity.is_missing
    disk.files_max = MANY
    again = produce_to_all(user, 2)
    hand.crash()

    assert held is None
    assert is_missing
    assert again[1].error_code == errors.NONE
    assert values_in(User(hand).fetch_all(0, 0, topic="many")[1]) == [b"1"]
