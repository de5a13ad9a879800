"""Topics with compression.type: batches are stored in its codec, whatever they came in."""

from __future__ import annotations

import gc

import pytest
from tests.support.broker.admin_user import BROKER, TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, User, a_batch, produced, records_in, values_in

from tarry.base import errors
from tarry.base.doors import disconnected, received
from tarry.base.limits import OPENED_BATCH_BYTES_MAX, RECOMPRESSED_REQUEST_BYTES_MAX
from tarry.cluster.configs.config_changes import SET
from tarry.partition.recompression import Recompression
from tarry.protocol import api_keys
from tarry.protocol.messages.produce import ProduceRequest
from tarry.records.batch import ATTRIBUTES, HEADER_SIZE, BatchHeader, decode_batch_header
from tarry.records.builder import BatchBuilder
from tarry.simulation.by_hand import START_WALL_MS, BrokerByHand
from tarry.wire.compression import GZIP, LZ4, NAMES, NONE, SNAPPY, ZSTD, compress, decompress
from tarry.wire.crc32c import crc32c

CODECS = range(len(NAMES))
TYPES = ("uncompressed", "gzip", "snappy", "lz4", "zstd")
# Content that gzip needs many turns for.
LARGE = b"".join(b"%d," % number for number in range(120_000))

LINES = b"".join(b'{"id":%d,"name":"user%d"}' % (id_, id_ % 97) for id_ in range(2_000))


@pytest.fixture
def user(hand: BrokerByHand) -> User:
    return User(hand)


def batch_of_all_kinds(codec: int, producer_id: int = -1, sequence: int = 0) -> bytes:
    builder = BatchBuilder()
    builder.append(START_WALL_MS, b"key", b"value", [("h", b"1"), ("h", None), ("", b"")])
    builder.append(START_WALL_MS - 5, None, b"")
    builder.append(START_WALL_MS + 7, b"", None)
    builder.append(START_WALL_MS, None, b"x" * 3_000)
    if producer_id < 0:
        return builder.build(codec)
    return builder.build(codec, producer_id=producer_id, producer_epoch=3, base_sequence=sequence)


def stored(user: User, topic: str = ORDERS) -> list[BatchHeader]:
    """The headers of the batches in partition 0."""
    data = user.fetch(0, topic=topic).records.to_bytes()
    found = []
    position = 0
    while position < len(data):
        header = decode_batch_header(data, position)
        assert crc32c(data[position + ATTRIBUTES : position + header.size]) == header.crc
        found.append(header)
        position += header.size
    return found


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
@pytest.mark.parametrize("type_", TYPES)
def test_a_batch_is_stored_in_the_topics_codec_and_nothing_else_of_it_changes(
    user: User, type_: str, codec: int
) -> None:
    user.create("topic", compression_type=type_)
    sent = batch_of_all_kinds(codec, producer_id=9, sequence=40)

    answer = user.produce(sent, topic="topic")

    (header,) = stored(user, "topic")
    before = decode_batch_header(sent, 0)
    found = [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in records_of(user, "topic")]
    assert (answer.error_code, answer.base_offset) == (errors.NONE, 0)
    assert header.codec == TYPES.index(type_)
    assert found == [
        (0, START_WALL_MS, b"key", b"value", [("h", b"1"), ("h", None), ("", b"")]),
        (1, START_WALL_MS - 5, None, b"", []),
        (2, START_WALL_MS + 7, b"", None, []),
        (3, START_WALL_MS, None, b"x" * 3_000, []),
    ]
    for name in ("producer_id", "producer_epoch", "base_sequence", "record_count"):
        assert getattr(header, name) == getattr(before, name), name
    assert (header.base_timestamp, header.max_timestamp) == (START_WALL_MS, START_WALL_MS + 7)


def records_of(user: User, topic: str):
    return records_in(user.fetch(0, topic=topic))


@pytest.mark.parametrize("codec", CODECS, ids=NAMES)
def test_a_batch_in_the_topics_codec_is_stored_byte_for_byte(user: User, codec: int) -> None:
    user.create("topic", compression_type=TYPES[codec])
    sent = batch_of_all_kinds(codec)

    user.produce(sent, topic="topic")

    data = user.fetch(0, topic="topic").records.to_bytes()
    assert data[HEADER_SIZE:] == sent[HEADER_SIZE:]


def test_the_level_of_the_codec_counts(user: User) -> None:
    for level in ("1", "9"):
        user.create(f"level{level}", compression_type="gzip", compression_gzip_level=level)
        user.produce(a_batch(LINES), topic=f"level{level}")

    assert stored(user, "level1")[0].size > stored(user, "level9")[0].size


def test_the_time_of_the_append_is_that_of_the_broker(user: User) -> None:
    user.create("topic", compression_type="lz4", message_timestamp_type="LogAppendTime")

    answer = user.produce(a_batch(b"a", b"b", times=(1, 2)), topic="topic")

    now = user.hand.now_wall_ms
    assert answer.log_append_time_ms == now
    assert [record.timestamp for record in records_of(user, "topic")] == [now, now]
    assert stored(user, "topic")[0].is_log_append_time


def test_a_batch_sent_again_is_a_duplicate(user: User) -> None:
    user.create("topic", compression_type="zstd")
    first = user.produce(batch_of_all_kinds(GZIP, producer_id=9), topic="topic")

    again = user.produce(batch_of_all_kinds(GZIP, producer_id=9), topic="topic")
    gap = user.produce(batch_of_all_kinds(GZIP, producer_id=9, sequence=5), topic="topic")

    assert (first.base_offset, again.base_offset) == (0, 0)
    assert again.error_code == errors.NONE
    assert gap.error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(stored(user, "topic")) == 1


# --- The setting.


def test_the_brokers_setting_counts_for_topics_without_one_and_may_change() -> None:
    operator = Operator(BrokerByHand({"compression.type": "gzip"}))
    user = User(operator.hand)
    user.create(ORDERS)
    user.create("own", compression_type="snappy")

    for type_ in ("gzip", "zstd", "producer"):
        operator.change(BROKER, "1", ("compression.type", SET, type_))
        user.produce(a_batch(b"a"))
        user.produce(a_batch(b"a"), topic="own")
    operator.change(TOPIC, ORDERS, ("compression.type", SET, "lz4"))
    user.produce(a_batch(b"a"))

    assert [NAMES[header.codec] for header in stored(user)] == ["gzip", "zstd", "none", "lz4"]
    assert [NAMES[header.codec] for header in stored(user, "own")] == ["snappy"] * 3


def test_a_topic_is_copied_with_all_the_settings_that_it_tells() -> None:
    operator = Operator(BrokerByHand())
    first = {
        "compression_type": "lz4",
        "file_delete_delay_ms": "1",
        "flush_ms": "5",
        "preallocate": "true",
        "unclean_leader_election_enable": "true",
    }
    operator.create(ORDERS, **first)
    told = {key: entry.value or "" for key, entry in operator.described(TOPIC, ORDERS).items()}

    operator.create("copy", **told)

    copied = operator.described(TOPIC, "copy")
    assert {key: entry.value or "" for key, entry in copied.items()} == told


# --- What is refused.


def test_a_batch_that_grows_beyond_max_message_bytes_is_too_large(user: User) -> None:
    batch = a_batch(b"x" * 5_000, codec=GZIP)
    user.create("topic", compression_type="uncompressed", max_message_bytes="1000")

    answer = user.produce(batch, topic="topic")

    assert len(batch) < 1_000
    assert answer.error_code == errors.MESSAGE_TOO_LARGE
    assert "made anew as compression.type asks" in (answer.error_message or "")
    assert values_in(user.fetch(0, topic="topic")) == []


def test_a_batch_too_large_as_it_came_is_refused_though_it_would_shrink(user: User) -> None:
    user.create("topic", compression_type="gzip", max_message_bytes="1000")

    answer = user.produce(a_batch(b"x" * 5_000), topic="topic")

    assert answer.error_code == errors.MESSAGE_TOO_LARGE


def test_a_bomb_is_refused_before_it_has_unfolded(user: User) -> None:
    user.create("topic", compression_type="lz4")
    bomb = a_batch(bytes(OPENED_BATCH_BYTES_MAX + 1), codec=ZSTD)

    answer = user.produce(bomb, topic="topic")

    assert answer.error_code == errors.INVALID_RECORD
    assert "cannot be opened" in (answer.error_message or "")


def refolded(batch: bytes, codec: int, content: bytes) -> bytes:
    """The batch with other content, sealed anew."""
    fields = batch[ATTRIBUTES:HEADER_SIZE]
    folded = compress(codec, content)
    size = (HEADER_SIZE - 12 + len(folded)).to_bytes(4, "big")
    crc = crc32c(fields + folded).to_bytes(4, "big")
    return batch[:8] + size + batch[12:17] + crc + fields + folded


def test_records_that_are_none_are_refused_with_their_place(user: User) -> None:
    user.create("topic", compression_type="lz4")
    batch = a_batch(b"a", b"b", b"c", codec=GZIP)
    content = decompress(GZIP, batch[HEADER_SIZE:], 10_000)

    cut = user.produce(refolded(batch, GZIP, content[:-1]), topic="topic")
    rest = user.produce(refolded(batch, GZIP, content + b"\0"), topic="topic")
    none = user.produce(refolded(batch, ZSTD, content), topic="topic")

    assert [cut.error_code, rest.error_code, none.error_code] == [errors.INVALID_RECORD] * 3
    assert [error.batch_index for error in cut.record_errors] == [2]
    assert values_in(user.fetch(0, topic="topic")) == []


@pytest.mark.parametrize("codec", [NONE, GZIP])
def test_what_the_topic_asks_of_each_record_is_asked_as_ever(user: User, codec: int) -> None:
    user.create("keyed", compression_type="zstd", cleanup_policy="compact")
    user.create("timely", compression_type="zstd", message_timestamp_before_max_ms="10")
    keyless = user.produce(a_batch(b"a", codec=codec), topic="keyed")
    late = user.produce(a_batch(b"a", times=(START_WALL_MS - 60_000,), codec=codec), topic="timely")

    assert (keyless.error_code, keyless.record_errors[0].batch_index) == (errors.INVALID_RECORD, 0)
    assert late.error_code == errors.INVALID_TIMESTAMP


@pytest.mark.parametrize("version", [3, 6])
def test_old_produces_may_write_to_a_topic_of_zstd_but_not_in_zstd(
    user: User, version: int
) -> None:
    user.create("topic", compression_type="zstd")

    taken = user.produce(a_batch(b"a", codec=GZIP), topic="topic", version=version)
    refused = user.produce(a_batch(b"a", codec=ZSTD), topic="topic", version=version)

    assert taken.error_code == errors.NONE
    assert refused.error_code == errors.UNSUPPORTED_COMPRESSION_TYPE
    assert user.fetch(0, topic="topic", version=9).error_code == errors.UNSUPPORTED_COMPRESSION_TYPE
    assert len(values_in(user.fetch(0, topic="topic", version=10))) == 1


def test_one_produce_does_not_unfold_to_more_than_memory_allows(user: User) -> None:
    parts = RECOMPRESSED_REQUEST_BYTES_MAX // (15 << 20) + 1
    user.create(
        "topic", partitions=parts, compression_type="uncompressed", max_message_bytes="99999999"
    )
    request = user.produce_request(*[a_batch(bytes(15 << 20), codec=ZSTD)] * parts, topic="topic")

    answers = produced(user.client.ask(api_keys.PRODUCE, 11, request))

    codes = [answer.error_code for answer in answers]
    assert codes == [errors.NONE] * (parts - 1) + [errors.MESSAGE_TOO_LARGE]


# --- In steps.


def large_batch(codec: int = NONE, producer_id: int = -1, sequence: int = 0) -> bytes:
    return a_batch(LARGE, codec=codec, producer_id=producer_id, sequence=sequence)


@pytest.fixture
def packed(user: User) -> str:
    """A topic for whose large batches one turn is not enough."""
    user.create("packed", 3, compression_type="gzip", max_message_bytes="2000000")
    return "packed"


@pytest.mark.parametrize("codec", [NONE, ZSTD])
def test_others_are_served_while_a_large_batch_is_made_anew(
    user: User, packed: str, codec: int
) -> None:
    other = User(user.hand)
    user.send_produce(large_batch(codec), topic=packed)

    assert other.produce(a_batch(b"a")).error_code == errors.NONE
    assert values_in(other.fetch(0)) == [b"a"]
    user.hand.settle()
    (answer,) = user.answers()

    assert produced(answer)[0].error_code == errors.NONE
    assert values_in(user.fetch(0, topic=packed)) == [LARGE]


def test_a_large_batch_takes_many_turns(user: User, packed: str) -> None:
    user.send_produce(large_batch(), topic=packed)

    turns = 1
    while user.hand.broker.recompressions.has_work_left():
        user.hand.turn()
        turns += 1

    # 40 units a KiB of gzip, 2,500 units a turn, 128 KiB at least.
    assert turns >= len(LARGE) // (128 * 1024)
    assert user.answers() == []


@pytest.mark.parametrize("codec", [SNAPPY, LZ4, ZSTD])
def test_batches_that_cannot_be_opened_share_no_turn(user: User, packed: str, codec: int) -> None:
    bomb = a_batch(bytes(OPENED_BATCH_BYTES_MAX + 1), codec=codec)
    request = user.produce_request(bomb, bomb, bomb, topic=packed)
    user.client.send(api_keys.PRODUCE, 11, request)

    turns = 1
    while user.hand.broker.recompressions.has_work_left():
        user.hand.turn()
        turns += 1

    # One when they arrive and one at the end of each turn.
    assert turns == 2
    (answer,) = user.answers()
    assert [each.error_code for each in produced(answer)] == [errors.INVALID_RECORD] * 3


def test_what_a_connection_sends_behind_it_is_appended_and_answered_behind_it(
    user: User, packed: str
) -> None:
    client = user.client
    requests = [
        user.produce_request(large_batch(NONE, 9, 0), topic=packed),
        user.produce_request(a_batch(b"b", producer_id=9, sequence=1), topic=packed),
        user.produce_request(a_batch(b"c")),
    ]
    frames = [client.encode(api_keys.PRODUCE, 11, request) for request in requests]

    client.send_bytes(b"".join(frames))
    user.hand.settle()

    answers = [produced(answer)[0] for answer in user.answers()]
    assert [(a.error_code, a.base_offset) for a in answers] == [(0, 0), (0, 1), (0, 0)]
    assert values_in(user.fetch(0, topic=packed)) == [LARGE, b"b"]


def test_small_batches_pass_a_large_one(user: User, packed: str) -> None:
    other = User(user.hand)
    user.send_produce(large_batch(), topic=packed)

    other.send_produce(a_batch(b"small"), topic=packed)
    user.hand.turn(*user.hand.disk.complete_flushes())

    assert produced(other.answers()[0])[0].base_offset == 0
    user.hand.settle()
    assert produced(user.answers()[0])[0].base_offset == 1
    assert values_in(user.fetch(0, topic=packed)) == [b"small", LARGE]


def test_only_the_first_that_waits_holds_a_copy_of_its_records(user: User, packed: str) -> None:
    users = [user, *(User(user.hand) for _ in range(3))]
    for each in users:
        each.send_produce(large_batch(), topic=packed)

    found = [each for each in gc.get_objects() if isinstance(each, Recompression)]
    copies = [each for each in found if len(each._content) >= len(LARGE)]

    assert len(copies) == 1
    del found, copies
    user.hand.settle()
    assert [produced(each.answers()[0])[0].base_offset for each in users] == [0, 1, 2, 3]


def test_a_produce_without_a_batch_is_refused_while_a_large_one_waits(
    user: User, packed: str
) -> None:
    other = User(user.hand)
    user.send_produce(large_batch(), topic=packed)

    other.client.send(api_keys.PRODUCE, 11, other.produce_request(None, topic=packed))
    other.client.send(api_keys.PRODUCE, 11, other.produce_request(topic=packed))
    user.hand.settle()

    refused, empty = other.answers()
    assert produced(refused)[0].error_code == errors.INVALID_RECORD
    assert produced(empty) == []
    assert len(user.answers()) == 1


def test_large_batches_of_many_connections_are_all_made_in_their_order(
    user: User, packed: str
) -> None:
    users = [User(user.hand) for _ in range(5)]
    for number, each in enumerate(users):
        each.send_produce(a_batch(b"%d" % number, LARGE, codec=number % 5), topic=packed)
    user.hand.settle(turns_max=2_000)

    offsets = [produced(each.answers()[0])[0].base_offset for each in users]
    # The fourth has the topic's codec.
    assert sorted(offsets) == [0, 2, 4, 6, 8]
    assert [offset for index, offset in enumerate(offsets) if index != GZIP] == [2, 4, 6, 8]


def test_all_partitions_of_a_produce_are_answered_each_as_its_own(user: User, packed: str) -> None:
    request = user.produce_request(
        large_batch(), a_batch(b"x", codec=ZSTD)[:-1], a_batch(b"c"), topic=packed
    )
    plain = user.produce_request(a_batch(b"plain"), None)
    both = ProduceRequest(
        acks=-1, timeout_ms=1_000, topic_data=[*plain.topic_data, *request.topic_data]
    )

    response = user.client.ask(api_keys.PRODUCE, 11, both)

    codes = [[p.error_code for p in topic.partition_responses] for topic in response.responses]
    assert codes[0] == [errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert codes[1] == [errors.NONE, errors.INVALID_RECORD, errors.NONE]
    assert values_in(user.fetch(0)) == [b"plain"]


def leave(user: User) -> None:
    user.hand.turn(disconnected(user.client.connection_id))
    user.hand.settle()


def test_a_large_batch_is_given_up_when_its_client_is_gone(user: User, packed: str) -> None:
    gone = User(user.hand)
    gone.send_produce(large_batch(), topic=packed)

    leave(gone)

    assert values_in(user.fetch(0, topic=packed)) == []
    assert not user.hand.broker.has_work_left()


def test_a_large_batch_that_nobody_would_repeat_is_appended_all_the_same(
    user: User, packed: str
) -> None:
    gone = User(user.hand)
    gone.send_produce(large_batch(), topic=packed, acks=0)

    leave(gone)

    assert values_in(user.fetch(0, topic=packed)) == [LARGE]


def test_a_connection_that_is_held_is_read_until_more_waits(user: User, packed: str) -> None:
    client = user.client
    connection_id = client.connection_id
    user.send_produce(large_batch(), topic=packed)
    is_read = not user.hand.transport.paused.get(connection_id, False)

    frame = client.encode(api_keys.PRODUCE, 11, user.produce_request(a_batch(b"b")))
    user.hand.turn(received(connection_id, frame))
    is_paused = user.hand.transport.paused[connection_id]
    user.hand.settle()

    assert is_read
    assert is_paused
    assert not user.hand.transport.paused[connection_id]
    assert len(user.answers()) == 2


def test_a_topic_deleted_meanwhile_is_unknown(user: User, packed: str) -> None:
    other = User(user.hand)
    user.send_produce(large_batch(), topic=packed)
    other.send_delete(packed)
    user.hand.settle()
    other.answers()

    answer = produced(user.answers()[0])[0]

    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_stopping_broker_ends_what_it_began(user: User, packed: str) -> None:
    user.send_produce(large_batch(), topic=packed)

    user.hand.stop()
    (answer,) = user.answers()
    user.hand.start()

    assert produced(answer)[0].error_code == errors.NONE
    assert values_in(User(user.hand).fetch(0, topic=packed)) == [LARGE]


def test_a_write_that_fails_is_not_acknowledged(user: User, packed: str) -> None:
    user.send_produce(large_batch(), topic=packed)
    user.hand.disk.fail_writes()
    user.hand.settle()

    assert produced(user.answers()[0])[0].error_code == errors.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_not_there_is_unknown(user: User) -> None:
    answer = user.produce(a_batch(b"a"), topic="nowhere")

    assert answer.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
