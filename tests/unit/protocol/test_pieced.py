"""A response that is encoded in pieces has the bytes of one that is encoded at once."""

from __future__ import annotations

import pytest

from tarry.base.doors import Chunk, FileRegion
from tarry.protocol import api_keys
from tarry.protocol.frames import encode_response
from tarry.protocol.message import Message
from tarry.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchResponse,
    NodeEndpoint,
    PartitionData,
)
from tarry.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tarry.protocol.pieced import PIECE_BYTES, PiecedResponse
from tarry.simulation.disk import SimulatedDisk
from tarry.wire.writer import ChunkList


def glued(chunks: list[Chunk]) -> bytes:
    return b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))


def joined(api_key: int, version: int, message: Message) -> bytes:
    return glued(encode_response(api_key, version, 7, message))


def groups(members: int, size: int) -> list[DescribedGroup]:
    return [
        DescribedGroup(
            group_id=f"g{number}",
            group_state="Stable",
            members=[
                DescribedGroupMember(member_id=f"m{each}", member_metadata=b"x" * size)
                for each in range(members)
            ],
        )
        for number in range(3)
    ]


def in_pieces(version: int, wanted: list[DescribedGroup]) -> bytes:
    response = PiecedResponse(api_keys.DESCRIBE_GROUPS, version, 7)
    response.open(DescribeGroupsResponse())
    for group in wanted:
        members = group.members
        group.members = []
        response.open(group)
        for member in members:
            response.add(member)
        response.close()
        group.members = members
    return glued(response.finish())


@pytest.mark.parametrize("version", range(7))
@pytest.mark.parametrize(("members", "size"), [(0, 0), (2, 5), (40, 3_000), (2, 2 * PIECE_BYTES)])
def test_groups_and_their_members_are_encoded_as_at_once(
    version: int, members: int, size: int
) -> None:
    wanted = groups(members, size)

    found = in_pieces(version, wanted)

    assert found == joined(api_keys.DESCRIBE_GROUPS, version, DescribeGroupsResponse(groups=wanted))


@pytest.mark.parametrize("version", range(14))
def test_fields_behind_an_array_follow_it(version: int) -> None:
    partitions = [MetadataResponsePartition(partition_index=each) for each in range(300)]
    brokers = [MetadataResponseBroker(node_id=1, host="h", port=9)]
    response = PiecedResponse(api_keys.METADATA, version, 7)

    response.open(MetadataResponse(brokers=brokers))
    response.open(MetadataResponseTopic(name="t"))
    for partition in partitions:
        response.add(partition)
    response.close()
    response.add(MetadataResponseTopic(name="u"))
    found = glued(response.finish())

    whole = MetadataResponse(
        brokers=brokers,
        topics=[
            MetadataResponseTopic(name="t", partitions=partitions),
            MetadataResponseTopic(name="u"),
        ],
    )
    assert found == joined(api_keys.METADATA, version, whole)


def test_a_response_without_elements_is_whole() -> None:
    response = PiecedResponse(api_keys.DESCRIBE_GROUPS, 5, 7)

    response.open(DescribeGroupsResponse())

    assert glued(response.finish()) == joined(api_keys.DESCRIBE_GROUPS, 5, DescribeGroupsResponse())


@pytest.mark.parametrize("version", [16, 18])
def test_a_struct_may_end_with_what_was_not_known_when_it_was_opened(version: int) -> None:
    topic = FetchableTopicResponse(topic_id=b"t" * 16)
    rows = [PartitionData(partition_index=each) for each in range(3)]
    endpoints = [NodeEndpoint(1, "host", 9092, "rack")]
    response = PiecedResponse(api_keys.FETCH, version, 7)

    response.open(FetchResponse(session_id=4))
    response.open(topic)
    for row in rows:
        response.add(row)
    response.close()
    response.end_with(FetchResponse(session_id=4, node_endpoints=endpoints))

    topic.partitions = rows
    whole = FetchResponse(session_id=4, responses=[topic], node_endpoints=endpoints)
    assert glued(response.finish()) == joined(api_keys.FETCH, version, whole)


@pytest.mark.parametrize("count", [1, 3_000])
def test_regions_of_files_stand_in_their_places_and_take_no_room(count: int) -> None:
    disk = SimulatedDisk()
    disk.make_directory("d")
    file = disk.open("d/f", create=True)
    file.append([b"r" * 100])
    topic = FetchableTopicResponse(topic="t")
    rows = [
        PartitionData(
            partition_index=each, records=ChunkList([FileRegion(file, 0, 1 << 18)], 1 << 18)
        )
        for each in range(count)
    ]
    response = PiecedResponse(api_keys.FETCH, 12, 7)

    response.open(FetchResponse())
    response.open(topic)
    for row in rows:
        response.add(row)
    size = response.size
    chunks = response.finish()

    topic.partitions = rows
    whole = encode_response(api_keys.FETCH, 12, 7, FetchResponse(responses=[topic]))
    assert size < 100 * (count + 1)
    assert sum(map(len, chunks)) == sum(map(len, whole))
    assert glued(chunks) == glued(whole)
    regions = [each for each in chunks if isinstance(each, FileRegion)]
    assert regions == [row.records.chunks[0] for row in rows if isinstance(row.records, ChunkList)]
