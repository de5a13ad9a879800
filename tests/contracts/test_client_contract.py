"""What a user of the client may rely on, whatever the face: sync, asyncio, uvloop, Arrow.

The same holds against Apache Kafka: `interop/test_client_contract_with_kafka.py`.  What the Arrow
face has no counterpart for is marked `by_record`, and refused with a sentence.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.client.faces import (
    FACES,
    FACES_OF_RECORDS,
    AioFace,
    SyncFace as Face,
    make_face,
)
from tests.support.client.late import error_when_late
from tests.support.patience import PATIENCE_S, tries

from tarry.base import errors
from tarry.client import (
    LATEST,
    Assignor,
    AssignorFailed,
    BrokerError,
    BrokerUnreachable,
    BufferFull,
    ClientClosed,
    CommitFailed,
    ConcurrentUse,
    DecodeError,
    DeliveryFailed,
    InvalidSetting,
    Json,
    NewTopic,
    NotSubscribed,
    RecordTooLarge,
    SchedulingUnsupported,
    Text,
    TimedOut,
    UnknownTopic,
)

pytestmark = pytest.mark.process

NOBODY = "127.0.0.1:1"
BROKER_TEXTS = {
    "auto.create.topics.enable": "false",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
}

# Tables have no codecs, no function for each row and no call for each record.
by_record = pytest.mark.parametrize("face", FACES_OF_RECORDS, indirect=True)


class Broker(Protocol):
    """Whoever answers at an address."""

    @property
    def address(self) -> str: ...


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    process = BrokerProcess(tmp_path_factory.mktemp("broker"))
    process.start(BROKER_TEXTS)
    yield process
    process.close()


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    made = make_face(request.param)
    yield made
    made.close()


class Scene:
    """Clients of one face, and a topic of two partitions that the test has for itself."""

    def __init__(self, face: Face, broker: Broker, topic: str) -> None:
        self.face = face
        self.run = face.run
        self.broker = broker
        self.topic = topic
        self.made: list[Any] = []
        self.admin = self.keep(face.Admin(bootstrap_servers=broker.address))
        # Of the first second of 1970 too, whenever the broker looks at the age of records.
        wanted = NewTopic(topic, 2, configs={"retention.ms": "-1"})
        self.run(self.admin.create_topics([wanted]))
        # Apache Kafka's broker hears of it behind its controller's answer.
        assert any(self.run(self.admin.find_topics([topic])) for _ in tries())

    def keep(self, client: Any) -> Any:
        self.made.append(client)
        return client

    def producer(self, **settings: Any) -> Any:
        given = {"bootstrap_servers": self.broker.address, **settings}
        return self.keep(self.face.Producer(**given))

    def consumer(self, *what: Any, **settings: Any) -> Any:
        given = {
            "bootstrap_servers": self.broker.address,
            "auto_offset_reset": "earliest",
            # A call that waits for records must not keep the next call waiting.
            "fetch_max_wait_ms": 50,
            **settings,
        }
        return self.keep(self.face.Consumer(*what, **given))

    def member(self, *what: Any, **settings: Any) -> Any:
        return self.consumer(*(what or (self.topic,)), group_id=self.topic, **settings)

    def write(self, *values: bytes, partition: int = 0) -> None:
        producer = self.producer()
        for value in values:
            self.run(producer.send(self.topic, value, partition=partition))
        self.run(producer.close())

    def committed(self) -> int | None:
        """Return the offset that the members' group committed in the first partition."""
        place = (self.topic, 0)
        told = self.run(self.member().committed([place]))[place]
        return None if told is None else int(told.offset)

    def read(self, consumer: Any, count: int) -> list[bytes | None]:
        """Read until so many records have come."""
        return self.face.read(consumer, count)


@pytest.fixture
def scene(face: Face, broker: Broker, request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(face, broker, re.sub(r"\W", "-", request.node.name)[:200])
    yield made
    for client in made.made:
        face.run(client.close())


def test_a_receipt_brings_its_offset_and_may_be_asked_again(scene: Scene) -> None:
    producer = scene.producer()

    receipt = scene.run(
        producer.send(scene.topic, b"v", key=b"k", headers={"h": b"1"}, partition=1, timestamp=7)
    )
    first, again = scene.face.outcome(receipt), scene.face.outcome(receipt)
    scene.run(producer.close())

    assert (first.offset, again.offset, first.partition) == (0, 0, 1)
    assert scene.face.outcome(receipt).offset == 0
    consumer = scene.consumer()
    consumer.assign([(scene.topic, 1)])
    (record,) = scene.face.take(consumer, 1)
    assert (record.offset, record.timestamp) == (0, 7)
    assert (record.key, record.value, record.headers) == (b"k", b"v", [("h", b"1")])


@by_record
def test_a_receipt_has_the_time_of_its_record(scene: Scene) -> None:
    receipt = scene.run(scene.producer().send(scene.topic, b"v", timestamp=7))

    assert scene.face.outcome(receipt).timestamp == 7


def test_records_come_out_in_the_order_in_which_they_were_sent(scene: Scene) -> None:
    producer = scene.producer(batch_size=200)
    wanted = [b"%d" % number for number in range(300)]
    for value in wanted:
        scene.run(producer.send(scene.topic, value, partition=0))
    scene.run(producer.flush())
    consumer = scene.consumer(max_poll_records=70)
    consumer.assign([(scene.topic, 0)])

    found = scene.read(consumer, 300)

    assert found == wanted
    assert scene.run(producer.partition_count(scene.topic)) == 2
    assert scene.run(consumer.partitions_of(scene.topic)) == [0, 1]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"value": 7}, TypeError),
        ({"key": 7}, TypeError),
        ({"partition": -1}, ValueError),
        ({"timestamp": 1.5}, TypeError),
        ({"headers": {"h": 1}}, TypeError),
        ({"topic": ""}, ValueError),
    ],
)
def test_an_argument_that_no_record_can_have_is_refused_at_once(
    face: Face, arguments: Any, error: type[Exception]
) -> None:
    producer = face.Producer(bootstrap_servers=NOBODY)

    with pytest.raises(error):
        face.run(producer.send(**{"topic": "t", **arguments}))
    face.run(producer.close())


@by_record
def test_text_is_no_value(face: Face) -> None:
    # A column of text is one of bytes: Arrow says how they are encoded.
    producer = face.Producer(bootstrap_servers=NOBODY)

    with pytest.raises(TypeError, match="bytes"):
        face.run(producer.send("t", "text"))
    face.run(producer.close())


@pytest.mark.parametrize("face", ["arrow"], indirect=True)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda face: face.Producer(partitioner=lambda topic, key, count: 0), "a column partition"),
        (lambda face: face.Producer(on_delivery=print), "ask the receipt"),
        (lambda face: face.Producer(value=Json(int)), "takes no codec"),
        (lambda face: face.Consumer(key=Json(int)), "takes no codec"),
    ],
    ids=["partitioner", "on_delivery", "producer's codec", "consumer's codec"],
)
def test_tables_refuse_what_is_for_single_records(
    face: Face, make: Callable[[Face], Any], words: str
) -> None:
    with pytest.raises((InvalidSetting, TypeError), match=words):
        make(face)


def test_what_was_not_delivered_comes_out_of_the_close(scene: Scene) -> None:
    producer = scene.producer(max_request_size=4_000_000)
    scene.run(producer.send(scene.topic, b"x" * 2_000_000))
    seen = scene.run(producer.send(scene.topic, b"y" * 2_000_000))

    with pytest.raises(RecordTooLarge):
        scene.face.outcome(seen)
    with pytest.raises(DeliveryFailed, match="1 record was not delivered"):
        scene.run(producer.close())
    with pytest.raises(ClientClosed):
        scene.run(producer.send(scene.topic, b"later"))


def test_waits_of_a_producer_end_in_time_and_say_why(scene: Scene) -> None:
    def send(topic: str, time_s: float, **settings: Any) -> None:
        producer = scene.producer(max_block_ms=int(time_s * 1_000), **settings)
        scene.run(producer.send(topic, b"x"))

    sentence = "topic 'nowhere' does not exist"
    unknown = error_when_late(lambda time_s: send("nowhere", time_s), sentence, 1.5)
    lonely = error_when_late(
        lambda time_s: send("t", time_s, bootstrap_servers=NOBODY), "connection refused", 0.2
    )

    assert isinstance(unknown, UnknownTopic)
    assert sentence in str(unknown)
    assert isinstance(lonely, TimedOut)
    assert "connection refused" in str(lonely)


@by_record
def test_on_delivery_is_called_in_the_order_of_the_records(scene: Scene) -> None:
    told: list[tuple[int, bool]] = []

    async def later(receipt: Any) -> None:
        await asyncio.sleep(0)
        told.append((receipt.offset, True))

    def at_once(receipt: Any) -> None:
        told.append((receipt.offset, False))

    is_async = isinstance(scene.face, AioFace)
    producer = scene.producer(on_delivery=later if is_async else at_once)
    for _ in range(3):
        scene.run(producer.send(scene.topic, b"v", partition=0))
    scene.run(producer.send(scene.topic, b"v", partition=0, on_delivery=at_once))
    scene.run(producer.flush())

    assert told == [(0, is_async), (1, is_async), (2, is_async), (3, False)]


@by_record
def test_a_record_goes_where_the_users_own_partitioner_says(scene: Scene) -> None:
    producer = scene.producer(partitioner=lambda topic, key, count: count - 1)

    receipts = [scene.run(producer.send(scene.topic, b"v", key=b"%d" % key)) for key in range(3)]

    assert [receipt.partition for receipt in receipts] == [1, 1, 1]


def test_a_record_without_room_waits_and_goes_out(scene: Scene) -> None:
    producer = scene.producer(buffer_memory=3_000, batch_size=1_000)
    receipts = [scene.run(producer.send(scene.topic, b"x" * 500, partition=0)) for _ in range(50)]

    offsets = [scene.face.outcome(receipt).offset for receipt in receipts]

    assert offsets == list(range(50))
    assert issubclass(BufferFull, TimedOut)


def test_a_block_that_fails_sends_what_it_was_given(scene: Scene) -> None:
    producer = scene.producer(linger_ms=60_000)
    receipt = scene.run(producer.send(scene.topic, b"v"))

    scene.face.leave(producer, ZeroDivisionError)

    assert scene.face.outcome(receipt).offset == 0


def test_the_next_member_goes_on_behind_the_last_record_that_was_finished(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3")
    first = scene.member()
    read = scene.face.take(first, 3)
    # The third is being worked on when the block fails.
    scene.face.leave(first, ZeroDivisionError)

    rest = scene.face.take(scene.member(), 2)

    assert [record.value for record in read] == [b"0", b"1", b"2"]
    assert [record.value for record in rest] == [b"2", b"3"]


def test_a_record_whose_failure_was_caught_in_the_block_is_not_committed(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3")
    member = scene.member()
    scene.face.take(member, 3)
    # The third has failed; the block went on, and ends well.
    scene.face.leave(member)

    assert scene.committed() == 2


def test_a_close_commits_no_batch_that_is_in_hand(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3")
    member = scene.member()
    scene.face.take_batch(member, 3)
    scene.run(member.close())

    assert scene.committed() == 0


def test_a_record_that_is_said_to_be_finished_is_committed_by_the_close(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3")
    member = scene.member()
    scene.face.take(member, 2)
    member.finish()
    scene.run(member.close())

    assert scene.committed() == 2


def test_a_close_does_not_go_back_behind_what_the_user_has_committed(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3")
    member = scene.member()
    (record,) = scene.face.take(member, 1)
    scene.run(member.commit(scene.face.committed_by(record)))
    scene.run(member.close())

    assert scene.committed() == 1


def test_records_that_an_iteration_did_not_yield_come_again(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3")
    consumer = scene.member()

    first = scene.face.take(consumer, 2)
    batch = scene.face.take_batch(consumer, 1)
    consumer.seek(scene.topic, 0, 1)
    last = scene.face.take(consumer, 3)

    assert [one.value for one in first] == [b"0", b"1"]
    assert batch == [b"2"]
    assert [one.value for one in last] == [b"1", b"2", b"3"]


@by_record
def test_a_producer_encodes_and_says_what_it_did(scene: Scene) -> None:
    producer = scene.producer(key=Text(), value=Json(int))
    scene.face.outcome(scene.run(producer.send(scene.topic, 7, key="seven", partition=0)))
    consumer = scene.consumer(key=Text(), value=Json(int))
    consumer.assign([(scene.topic, 0)])

    (record,) = scene.face.take(consumer, 1)

    assert (record.key, record.value) == ("seven", 7)
    assert producer.metrics().records == 1
    with pytest.raises(TypeError):
        scene.run(producer.send(scene.topic, 7, key=b"seven"))


@by_record
def test_a_consumer_decodes_and_skips_what_it_cannot(scene: Scene) -> None:
    scene.write(b"1", b"{", b"3")
    consumer = scene.consumer(value=Json(int))
    consumer.assign([(scene.topic, 0)])

    first = scene.face.take(consumer, 1)
    with pytest.raises(DecodeError) as refused:
        scene.face.take(consumer, 1)
    refused.value.skip()
    last = scene.face.take(consumer, 1)

    assert [record.value for record in first + last] == [1, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda consumer: consumer.poll("soon"), TypeError),
        (lambda consumer: consumer.poll(-1), ValueError),
        (lambda consumer: consumer.poll(1, 0), ValueError),
        (lambda consumer: consumer.commit(42), TypeError),
        (lambda consumer: consumer.seek("t", 0, 0), NotSubscribed),
        (lambda consumer: consumer.assign([("t", "0")]), TypeError),
        (lambda consumer: consumer.subscribe("t", listener=1), TypeError),
        (lambda consumer: consumer.commit_async(callback=1), TypeError),
        (lambda consumer: consumer.close(timeout=-1), ValueError),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(
    face: Face, call: Callable[[Any], Any], error: type[Exception]
) -> None:
    consumer = face.Consumer(bootstrap_servers=NOBODY, group_id="g")

    with pytest.raises(error):
        face.run(call(consumer))
    face.run(consumer.close(0))


def test_a_member_commits_what_it_says(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2")
    place = (scene.topic, 0)
    consumer = scene.member(enable_auto_commit=False)
    record = scene.face.take(consumer, 2)[0]

    scene.run(consumer.commit(scene.face.committed_by(record)))
    behind_one = scene.run(consumer.committed([place]))[place]
    scene.run(consumer.commit())
    behind_all = scene.run(consumer.committed([place]))[place]

    assert consumer.group.is_leader
    assert sorted(consumer.assignment()) == [(scene.topic, 0), (scene.topic, 1)]
    assert [behind_one.offset, behind_all.offset] == [1, 2]
    # Whoever goes on there can tell whether a new leader has lost what was read.
    assert [behind_one.leader_epoch, behind_all.leader_epoch] == [0, 0]
    with pytest.raises(CommitFailed):
        scene.run(consumer.commit({("another", 0): 1}))


def test_places_are_pairs_in_every_call(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2")
    place, other = (scene.topic, 0), (scene.topic, 1)
    consumer = scene.consumer()
    consumer.assign([place, other])
    consumer.seek(place, 1)
    consumer.pause([other])
    (record,) = scene.face.take(consumer, 1)

    assert (record.value, consumer.position(place)) == (b"1", 2)
    assert (consumer.lag(place), consumer.is_at_end(place)) == (1, False)
    assert consumer.paused() == [other]
    # The older form.
    consumer.seek(*place, 0)
    assert consumer.position(*place) == 0
    with pytest.raises(TypeError, match="seek takes a partition and an offset"):
        consumer.seek(place)


def test_a_consumer_that_reads_nothing_says_so_and_does_not_wait(scene: Scene) -> None:
    consumer = scene.consumer()

    assert "nothing is subscribed or assigned" in consumer.trouble
    with pytest.raises(NotSubscribed, match="nothing is subscribed or assigned"):
        scene.face.take(consumer, 1)
    with pytest.raises(NotSubscribed, match="nothing is subscribed or assigned"):
        scene.face.take_batch(consumer, 1)


def test_an_iteration_that_is_unsubscribed_says_so_when_all_is_given_back(scene: Scene) -> None:
    scene.write(b"v", partition=0)
    consumer = scene.member()
    scene.face.take(consumer, 1)

    consumer.unsubscribe()

    with pytest.raises(NotSubscribed, match="nothing is subscribed or assigned"):
        scene.face.take(consumer, 1)


def test_a_list_of_servers_is_taken(scene: Scene) -> None:
    servers = ["127.0.0.1:1", scene.broker.address]

    producer = scene.keep(scene.face.Producer(bootstrap_servers=servers))

    assert scene.face.outcome(scene.run(producer.send(scene.topic, b"v", partition=0))).offset == 0


@by_record
def test_a_record_is_sent_and_waited_for_in_one_call(scene: Scene) -> None:
    producer = scene.producer()

    receipt = scene.run(producer.send_and_wait(scene.topic, b"v", partition=1))

    assert (receipt.is_done, receipt.partition, receipt.offset) == (True, 1, 0)
    with pytest.raises(RecordTooLarge):
        scene.run(scene.producer().send_and_wait(scene.topic, b"v" * 2_000_000))


@pytest.mark.parametrize("face", ["arrow"], indirect=True)
def test_a_table_is_sent_and_waited_for_in_one_call(scene: Scene) -> None:
    import pyarrow as pa

    from tarry.client.arrow import ArrowProducer

    table = pa.table({"value": [b"a", b"b"], "partition": [0, 1]})
    producer = scene.keep(ArrowProducer(bootstrap_servers=scene.broker.address))

    receipt = producer.send_and_wait(scene.topic, table)

    assert receipt.is_done
    assert [(one.partition, one.offset) for one in receipt.batches] == [(0, 0), (1, 0)]
    with pytest.raises(RecordTooLarge):
        producer.send_and_wait(scene.topic, pa.table({"value": [b"v" * 2_000_000]}))


@by_record
def test_a_receipt_has_the_time_of_the_append_where_the_broker_stamps(scene: Scene) -> None:
    topic = f"{scene.topic}-stamped"
    stamped = NewTopic(topic, 1, configs={"message.timestamp.type": "LogAppendTime"})
    scene.run(scene.admin.create_topics([stamped]))
    receipt = scene.run(scene.producer().send_and_wait(topic, b"v", timestamp=7))
    consumer = scene.consumer()
    consumer.assign([(topic, 0)])

    (record,) = scene.face.take(consumer, 1)

    assert receipt.timestamp == record.timestamp != 7


@by_record
def test_a_group_of_records_is_a_sequence_of_them(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2", b"3", partition=1)
    consumer = scene.consumer()
    consumer.assign([(scene.topic, 1)])

    (group,) = scene.run(consumer.poll(PATIENCE_S, max_records=4))

    assert (group.topic, group.partition, group.next_offset) == (scene.topic, 1, len(group))
    assert [record.offset for record in group] == list(range(len(group)))
    assert {(record.topic, record.partition) for record in group} == {(scene.topic, 1)}
    assert list(group) == group.records == group[:]
    assert group[0] is group.records[0]


def test_a_reader_moves_stops_and_says_where_it_is(scene: Scene) -> None:
    scene.write(b"0", b"1", b"2")
    place = (scene.topic, 0)
    consumer = scene.consumer()
    consumer.assign([place])
    consumer.seek_to_end()
    scene.run(consumer.poll(0))
    ends = scene.run(consumer.end_offsets([place]))
    begins = scene.run(consumer.beginning_offsets([place]))
    found = scene.run(consumer.offsets_for_times({place: 0}))
    consumer.seek(*place, 2)

    assert scene.read(consumer, 1) == [b"2"]
    assert consumer.metrics().records == 1
    assert (begins[place], ends[place], found[place]) == (0, 3, 0)
    assert (consumer.position(*place), consumer.lag(*place)) == (3, 0)
    assert consumer.is_at_end(*place)
    consumer.pause([place])
    consumer.seek_to_beginning()
    assert scene.run(consumer.poll(0.05)) == []
    consumer.resume([place])
    assert scene.read(consumer, 3) == [b"0", b"1", b"2"]
    with pytest.raises(NotSubscribed):
        consumer.seek(scene.topic, 1, 0)


def test_a_poll_or_an_iteration_is_woken(scene: Scene) -> None:
    consumer = scene.member()
    scene.run(consumer.poll(0.05))

    consumer.wakeup()
    groups = scene.run(consumer.poll(PATIENCE_S))
    consumer.wakeup()
    records = scene.face.take(consumer, 1)

    assert (groups, records) == ([], [])


def test_a_commit_that_nobody_waits_for_is_told_in_a_poll(scene: Scene) -> None:
    scene.write(b"0")
    told: list[Any] = []

    def hear(offsets: Any, error: Any) -> None:
        told.append((offsets[(scene.topic, 0)].offset, error))

    consumer = scene.member(enable_auto_commit=False)
    scene.read(consumer, 1)
    consumer.commit_async(callback=hear)
    before = list(told)
    while not told:
        scene.run(consumer.poll(0.1))
    consumer.commit_async({(scene.topic, 0): 0}, hear)
    scene.run(consumer.close())

    assert before == []
    assert told == [(1, None), (0, None)]


def test_a_close_tells_what_is_revoked(scene: Scene) -> None:
    told = Told(scene.face, lambda consumer: consumer.commit())
    consumer = scene.member(listener=told.listener, enable_auto_commit=False)
    scene.write(b"0")
    scene.read(consumer, 1)
    scene.run(consumer.close())

    assert told.told == [("assigned", 2), ("revoked", 2)]
    reached = scene.run(scene.member().committed([(scene.topic, 0)]))
    assert reached[(scene.topic, 0)].offset == 1


class Told:
    """Told what happens, in the class of the face's own listener."""

    def __init__(self, face: Face, action: Callable[[Any], object] | None = None) -> None:
        told = self.told = []  # type: list[tuple[str, int]]

        def hear(what: str, consumer: Any, places: list[Any]) -> object:
            told.append((what, len(places)))
            return None if action is None else action(consumer)

        class Listener(face.Listener):  # type: ignore[misc, name-defined]
            def on_assigned(self, consumer: Any, places: list[Any]) -> Any:
                return hear("assigned", consumer, places)

            def on_revoked(self, consumer: Any, places: list[Any]) -> Any:
                return hear("revoked", consumer, places)

        self.listener = Listener()


def test_callbacks_are_told_inside_polls_and_may_commit_but_not_poll(scene: Scene) -> None:
    scene.write(b"0")
    told = Told(scene.face, lambda consumer: consumer.commit({(scene.topic, 0): 1}))
    consumer = scene.member(listener=told.listener, enable_auto_commit=False)
    before = list(told.told)
    while not told.told:
        scene.run(consumer.poll(0.1))

    assert before == []
    assert told.told[0] == ("assigned", 2)
    again = Told(scene.face, lambda consumer: consumer.poll(0))
    consumer.subscribe(["another"], again.listener)
    with pytest.raises(ConcurrentUse, match="was called inside on_"):
        for _ in range(int(PATIENCE_S)):
            scene.run(consumer.poll(1.0))


@pytest.mark.parametrize("call", ["metrics", "group", "seek", "close", "wakeup"])
def test_an_assignor_that_calls_its_own_consumer_is_an_error_and_no_deadlock(
    scene: Scene, call: str
) -> None:
    def curious(members: Any, partition_counts: Any) -> Any:
        if is_curious:
            asked = getattr(consumer, call)
            if call == "seek":
                asked(scene.topic, 0, 0)
            elif call != "group":
                scene.face.step(asked())
        places = [(topic, index) for topic, n in partition_counts.items() for index in range(n)]
        return {members[0].member_id: places}

    is_curious = True
    consumer = scene.member(assignors=[Assignor("curious", curious)])

    if call == "wakeup":
        # That waits for nothing.
        assert scene.run(consumer.poll(PATIENCE_S)) == []
    else:
        with pytest.raises(AssignorFailed, match="ConcurrentUse: an assignor has called the consu"):
            scene.run(consumer.poll(PATIENCE_S))
    is_curious = False
    scene.write(b"0")
    assert scene.read(consumer, 1) == [b"0"]


def test_an_administrator_elects_and_reassigns(scene: Scene) -> None:
    admin, run = scene.admin, scene.run
    place = (scene.topic, 0)

    elected = run(admin.elect_leaders([place]))
    unclean = run(admin.elect_leaders([place], unclean=True))
    targets = {place: [77], (scene.topic, 9): None}
    moved = run(admin.alter_partition_reassignments(targets, outcomes=True))
    cancelled = run(admin.alter_partition_reassignments({place: None}, outcomes=True))

    assert elected[place].code == unclean[place].code == errors.ELECTION_NOT_NEEDED
    assert moved[place].code == errors.INVALID_REPLICA_ASSIGNMENT
    assert isinstance(moved[scene.topic, 9], UnknownTopic)
    assert cancelled[place].code == errors.NO_REASSIGNMENT_IN_PROGRESS
    assert run(admin.elect_leaders()) == {}
    assert run(admin.list_partition_reassignments()) == {}
    assert run(admin.list_partition_reassignments([place])) == {}
    with pytest.raises(BrokerError) as refused:
        run(admin.unregister_broker(77))
    assert refused.value.code == errors.BROKER_ID_NOT_REGISTERED


def test_an_administrator_is_told_of_levels_of_features_and_asks_for_others(scene: Scene) -> None:
    admin, run = scene.admin, scene.run
    feature = "group.version"

    (found,) = [one for one in run(admin.describe_features()) if one.name == feature]
    run(admin.update_features({feature: found.level}, validate_only=True))
    with pytest.raises(BrokerError) as refused:
        run(admin.update_features({feature: found.level_max + 1}, validate_only=True))

    assert 0 <= found.level_min <= found.level <= found.level_max
    assert refused.value.code == errors.INVALID_UPDATE_VERSION
    assert feature in str(refused.value)


def test_a_change_that_is_refused_is_raised(scene: Scene) -> None:
    admin, run, topic = scene.admin, scene.run, scene.topic
    nowhere = ("nowhere", 0)
    changes: list[tuple[Callable[..., Any], int]] = [
        (partial(admin.create_topics, [NewTopic(topic, 1)]), errors.TOPIC_ALREADY_EXISTS),
        (partial(admin.delete_topics, ["nowhere"]), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (partial(admin.create_partitions, topic, 1), errors.INVALID_PARTITIONS),
        (partial(admin.delete_records, {nowhere: 1}), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (partial(admin.commit_group_offsets, topic, {nowhere: 1}), 3),
        (partial(admin.delete_groups, ["nobody"]), errors.GROUP_ID_NOT_FOUND),
        (partial(admin.elect_leaders, [nowhere]), errors.UNKNOWN_TOPIC_OR_PARTITION),
        (partial(admin.alter_partition_reassignments, {nowhere: [1]}), 3),
    ]
    for change, code in changes:
        with pytest.raises(BrokerError) as refused:
            run(change())
        told = run(change(outcomes=True))

        assert refused.value.code == code
        assert isinstance(refused.value, UnknownTopic) == (code == 3)
        assert str(refused.value) in str(told)


def test_the_first_refusal_of_several_is_raised_with_the_others_in_its_notes(scene: Scene) -> None:
    topics = [NewTopic(scene.topic, 1), NewTopic(f"{scene.topic}-2", 1), NewTopic("no name", 1)]

    with pytest.raises(BrokerError, match=re.escape(scene.topic)) as refused:
        scene.run(scene.admin.create_topics(topics))

    other, count = refused.value.__notes__
    assert "also: " in other and "no name" in other
    assert count == "1 of 3 were done; outcomes=True returns them all"


def test_what_is_not_there_is_an_error_at_once_and_holds_nothing_up(scene: Scene) -> None:
    run, admin, place = scene.run, scene.admin, (scene.topic, 0)
    consumer = scene.consumer()
    # None of them is an error of time, though each has a minute.
    told = run(admin.offsets({("nowhere", 0): LATEST, (scene.topic, 9): LATEST, place: LATEST}))
    epochs = run(admin.epoch_ends({("nowhere", 0): 0}))
    with pytest.raises(UnknownTopic, match="nowhere"):
        run(consumer.end_offsets([("nowhere", 0), place]))
    with pytest.raises(UnknownTopic, match="partitions 0 to 1, not 9"):
        run(consumer.beginning_offsets([(scene.topic, 9)]))
    with pytest.raises(BrokerUnreachable, match="there is no broker 77"):
        run(admin.describe_broker_configs(77))
    with pytest.raises(BrokerUnreachable, match="there is no broker 77"):
        run(admin.api_versions(77))
    with pytest.raises(UnknownTopic):
        run(admin.describe_topic_configs("nowhere"))

    assert isinstance(told["nowhere", 0], UnknownTopic)
    assert isinstance(told[scene.topic, 9], UnknownTopic)
    assert told[place].offset == 0
    assert isinstance(epochs["nowhere", 0], UnknownTopic)


def test_an_administrator_makes_grows_describes_and_deletes(scene: Scene) -> None:
    admin, run = scene.admin, scene.run
    grown = run(admin.create_partitions(scene.topic, 3))
    scene.write(b"0")
    ends = run(admin.offsets({(scene.topic, 0): -1}))
    committed = run(admin.offsets({(scene.topic, 0): -1}, read_committed=True))
    leader_epoch = ends[(scene.topic, 0)].leader_epoch
    epochs = run(admin.epoch_ends({(scene.topic, 0): leader_epoch}))
    # Apache Kafka's broker applies later what its controller has answered.
    for _ in tries():
        (described,) = run(admin.describe_topics([scene.topic]))
        if len(described.partitions) > 2:
            break
    producers = run(admin.describe_producers([(scene.topic, 0), (scene.topic, 1)]))
    group = f"{scene.topic}-by-admin"
    run(admin.commit_group_offsets(group, {(scene.topic, 0): 1}))
    offsets = run(admin.group_offsets([group]))
    (gone,) = run(admin.delete_topics([scene.topic]))

    assert (grown.error, gone.error) == (None, None)
    assert list(described.partitions) == [0, 1, 2]
    assert ends[(scene.topic, 0)].offset == 1
    assert committed == ends
    assert epochs == {(scene.topic, 0): (leader_epoch, 1)}
    assert [one.last_sequence for one in producers[(scene.topic, 0)]] == [0]
    assert producers[(scene.topic, 1)] == []
    assert offsets[group][(scene.topic, 0)].offset == 1
    (member,) = run(admin.describe_cluster()).brokers
    assert str(member.address) == scene.broker.address
    with pytest.raises(UnknownTopic):
        run(admin.describe_topics(["nowhere"]))
    with pytest.raises(TypeError):
        run(admin.describe_topics(5))


@by_record
def test_a_record_that_is_due_later_is_refused_where_nothing_delays_it(scene: Scene) -> None:
    producer = scene.producer()

    with pytest.raises(SchedulingUnsupported, match=r"Apache Kafka has none|delay\.enable=true"):
        scene.run(producer.send(scene.topic, b"later", deliver_after="1h"))
    with pytest.raises(SchedulingUnsupported):
        scene.run(producer.cancel(scene.topic, schedule_id="call-7"))
    scene.run(producer.send(scene.topic, b"now"))
    scene.run(producer.flush())

    assert scene.read(scene.member(), 1) == [b"now"]
