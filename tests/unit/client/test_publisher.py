"""Finished batches under an id of the caller's: sent once, and found again in the log."""

import pyarrow
import pytest

from tarry.base.errors import MESSAGE_TOO_LARGE, CorruptData
from tarry.client.arrow.finished_batches import BatchPacker
from tarry.client.core.publisher.send import ACCEPTED, OUT_OF_ORDER, REFUSED, UNCLEAR
from tarry.client.errors import TopicRecreated, UnknownTopic
from tarry.client.settings import ProducerSettings
from tarry.client.sync.publisher import Publisher
from tarry.records.batch import BatchHeader, has_valid_crc
from tarry.records.numbering import numbered

CODECS = ["none", "gzip", "lz4"]


def packed(topic, partition_count, count, codec="none", batch_bytes=2_000):
    settings = ProducerSettings({"compression.type": codec})
    packer = BatchPacker(topic, partition_count, settings, batch_bytes)
    keys = [b"k%d" % (number % 7) for number in range(count)]
    values = [b"v%d" % number for number in range(count)]
    table = pyarrow.table({"key": keys, "value": values})
    return [*packer.pack(table, 1_000), *packer.drain()]


@pytest.mark.parametrize("codec", CODECS)
def test_a_numbered_batch_has_its_producer_and_a_valid_crc(codec):
    batch = packed("a", 1, 50, codec)[0]

    data = numbered(batch.data, 77, 3, 1_000)

    header = BatchHeader(data, 0)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (77, 3, 1_000)
    assert has_valid_crc(data, 0, header)
    assert data[61:] == batch.data[61:]


def test_a_part_of_a_batch_is_not_numbered():
    with pytest.raises(CorruptData, match="not one record batch"):
        numbered(packed("a", 1, 50)[0].data[:-1], 1, 0, 0)


def test_rows_without_a_key_go_round_the_partitions_a_batch_at_a_time():
    packer = BatchPacker("a", 3, ProducerSettings({}), 200)
    packer.any_partition = 2
    table = pyarrow.table({"value": [b"x" * 50] * 8})

    batches = [*packer.pack(table, 1_000), *packer.drain()]

    assert [batch.partition for batch in batches] == [2, 0, 1, 2]
    assert sum(batch.record_count for batch in batches) == 8


@pytest.fixture
def publisher(tarry):
    tarry.topic("a", partitions=3)
    with Publisher({"bootstrap.servers": tarry.bootstrap}) as made:
        yield made


def ids_of(publisher):
    return {topic.name: topic.topic_id for topic in publisher.describe_topics(["a"])}


def test_batches_are_taken_once_and_found_again(tarry, publisher):
    producer_id, epoch = publisher.new_producer_id()
    ids = ids_of(publisher)
    sequences = dict.fromkeys(range(3), 0)

    for batch in packed("a", 3, 300):
        place = ("a", batch.partition)
        data = numbered(batch.data, producer_id, epoch, sequences[batch.partition])
        sequences[batch.partition] += batch.record_count
        for _ in range(2):
            assert publisher.send_batches({place: data}, ids)[place].kind == ACCEPTED

    assert len(tarry.records("a")) == 300
    ranges = {("a", index): (0, count) for index, count in sequences.items()}
    for place, seen in publisher.look_back(ranges, ids, producer_id).items():
        assert seen.end_offset == sequences[place[1]]
        assert not seen.has_holes
        assert [one.base_sequence for one in seen.batches] == [
            one.base_offset for one in seen.batches
        ]
        assert seen.batches[-1].last_sequence == sequences[place[1]] - 1
    others = publisher.look_back(ranges, ids, producer_id + 1)
    assert all(seen.batches == () for seen in others.values())


def test_what_a_leader_does_not_take_has_its_kind(publisher):
    producer_id, epoch = publisher.new_producer_id()
    ids = ids_of(publisher)
    batch = packed("a", 1, 5)[0].data
    place = ("a", 0)
    first = numbered(batch, producer_id, epoch, 0)
    assert publisher.send_batches({place: first}, ids)[place].kind == ACCEPTED

    gap = publisher.send_batches({place: numbered(batch, producer_id, epoch, 50)}, ids)[place]
    anew = publisher.send_batches({place: first}, {"a": bytes(15) + b"x"})[place]
    unknown = publisher.send_batches({("b", 0): first}, {})["b", 0]
    damaged = publisher.send_batches({place: first[:-1] + b"?"}, ids)[place]

    assert gap.kind == OUT_OF_ORDER
    assert (anew.kind, type(anew.error)) == (REFUSED, TopicRecreated)
    assert (unknown.kind, type(unknown.error)) == (UNCLEAR, UnknownTopic)
    assert damaged.kind == UNCLEAR


def test_a_connection_that_is_cut_leaves_the_outcome_unclear(tarry, publisher):
    producer_id, epoch = publisher.new_producer_id()
    ids = ids_of(publisher)
    batch = numbered(packed("a", 1, 5)[0].data, producer_id, epoch, 0)
    tarry.cut("Produce")

    outcome = publisher.send_batches({("a", 0): batch}, ids)["a", 0]

    assert outcome.kind == UNCLEAR
    assert publisher.send_batches({("a", 0): batch}, ids)["a", 0].kind == ACCEPTED
    assert len(tarry.records("a")) == 5


@pytest.mark.parametrize(("refusals", "kind"), [(1, ACCEPTED), (4, REFUSED)])
def test_batches_that_are_too_large_together_are_sent_alone(tarry, publisher, refusals, kind):
    producer_id, epoch = publisher.new_producer_id()
    ids = ids_of(publisher)
    batches = {
        ("a", batch.partition): numbered(batch.data, producer_id, epoch, 0)
        for batch in packed("a", 3, 30)
    }
    tarry.fail("Produce", code=MESSAGE_TOO_LARGE, times=refusals)

    outcomes = publisher.send_batches(batches, ids)

    assert {place: one.kind for place, one in outcomes.items()} == dict.fromkeys(batches, kind)
    assert len(tarry.records("a")) == (30 if kind == ACCEPTED else 0)
