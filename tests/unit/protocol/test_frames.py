"""Frames: the length before them counts everything behind it, copied or not."""

from __future__ import annotations

from tarry.base.doors import FileRegion
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_request, encode_response
from tarry.protocol.headers import decode_request_header, decode_response_header
from tarry.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    PartitionData,
    decode_fetch_response,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
    decode_produce_request,
)
from tarry.wire import ChunkList, Reader, Window, window_of


class MemoryFile:
    """As much of a file as a region needs."""

    path = "segment"
    size = 1_000_000


def answer(*regions: FileRegion) -> FetchResponse:
    partitions = [
        PartitionData(index, records=ChunkList([region], region.size))
        for index, region in enumerate(regions)
    ]
    return FetchResponse(responses=[FetchableTopicResponse("topic", partitions=partitions)])


def test_a_request_frame_begins_with_its_length() -> None:
    batch = window_of(b"b" * 10_000)
    topic = TopicProduceData("topic", partition_data=[PartitionProduceData(3, batch)])

    frame = encode_request(api_keys.PRODUCE, 9, 42, "me", ProduceRequest(topic_data=[topic]))

    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    reader = Reader(frame, 4)
    header = decode_request_header(reader)
    request = decode_produce_request(reader, 9)
    reader.expect_end()
    assert (header.correlation_id, header.client_id) == (42, "me")
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, Window)
    assert records.to_bytes() == b"b" * 10_000


def test_regions_of_files_stay_regions_in_the_middle_of_a_response() -> None:
    first = FileRegion(MemoryFile(), 0, 1000)  # type: ignore[arg-type]
    second = FileRegion(MemoryFile(), 5000, 2000)  # type: ignore[arg-type]

    chunks = encode_response(api_keys.FETCH, 12, 42, answer(first, second))

    assert [type(chunk) for chunk in chunks] == [bytes, FileRegion, bytes, FileRegion, bytes]
    assert chunks[1] is first
    assert chunks[3] is second
    assert isinstance(chunks[0], bytes)
    assert int.from_bytes(chunks[0][:4], "big") == sum(len(chunk) for chunk in chunks) - 4


def test_a_response_with_the_regions_bytes_in_their_place_decodes() -> None:
    region = FileRegion(MemoryFile(), 0, 300)  # type: ignore[arg-type]
    chunks = encode_response(api_keys.FETCH, 12, 42, answer(region))

    frame = b"".join(b"r" * 300 if chunk is region else bytes(chunk) for chunk in chunks)  # type: ignore[arg-type]
    reader = Reader(frame, 4)
    correlation_id = decode_response_header(reader, api_keys.FETCH, 12)
    response = decode_fetch_response(reader, 12)
    reader.expect_end()

    assert correlation_id == 42
    records = response.responses[0].partitions[0].records
    assert isinstance(records, Window)
    assert records.to_bytes() == b"r" * 300


# Protocol trap 9: librdkafka refuses null records from Fetch v12 on.
def test_trap_9_empty_records_are_a_length_of_one_and_not_null() -> None:
    def response_with(records: ChunkList | None) -> bytes:
        partition = PartitionData(0, records=records)
        message = FetchResponse(responses=[FetchableTopicResponse("t", partitions=[partition])])
        (frame,) = encode_response(api_keys.FETCH, 12, 1, message)
        assert isinstance(frame, bytes)
        return frame

    # Behind the records stand three empty counts of tagged fields: partition, topic, response.
    assert response_with(ChunkList([], 0))[-4:] == b"\x01\x00\x00\x00"
    assert response_with(None)[-4:] == b"\x00\x00\x00\x00"


# Protocol trap 10: 0 would send clients with a rack to node 0.
def test_trap_10_the_preferred_read_replica_is_minus_one_unless_set() -> None:
    assert PartitionData().preferred_read_replica == -1
