"""Requests of real clients, as `tools/capture_frames.py` recorded them, decode and encode again.

Each file names its origin; each frame stands below its API and version.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tarry.protocol.api_keys import APIS
from tarry.protocol.frames import encode_request
from tarry.protocol.headers import RequestHeader, decode_request_header
from tarry.protocol.message import Message
from tarry.protocol.registry import MESSAGES
from tarry.wire import Reader, Window, compression

FILES = sorted((Path(__file__).parent / "golden").glob("*.hex"))


def frames_of(path: Path) -> list[tuple[str, bytes]]:
    """(title, frame without its length) of every frame in a file."""
    title, frames = "", []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            title = line[1:].strip()
        elif line:
            frames.append((title, bytes.fromhex(line)))
    return frames


FRAMES = [
    pytest.param(title, frame, id=f"{path.stem}-{title.replace(' ', '-')}")
    for path in FILES
    for title, frame in frames_of(path)
]
APIS_BY_NAME = {api.name: api for api in APIS.values()}


def decoded(frame: bytes) -> tuple[RequestHeader, Message]:
    reader = Reader(frame)
    header = decode_request_header(reader)
    message = MESSAGES[header.api_key].decode_request(reader, header.api_version)
    reader.expect_end()
    return header, message


def request_of(client: str, name: str) -> Any:
    path = next(path for path in FILES if path.stem == client)
    for title, frame in frames_of(path):
        if title.startswith(f"{name} "):
            return decoded(frame)[1]
    raise AssertionError(f"{client} sent no {name}")


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_golden_file_names_its_origin(path: Path) -> None:
    first_line = path.read_text(encoding="utf-8").splitlines()[0]

    assert first_line.startswith("# origin: ")


@pytest.mark.parametrize(("title", "frame"), FRAMES)
def test_a_clients_request_decodes_to_its_last_byte(title: str, frame: bytes) -> None:
    name, version = title.split(" v")

    header, _ = decoded(frame)

    assert header.api_key == APIS_BY_NAME[name].key
    assert header.api_version == int(version)


@pytest.mark.parametrize(("title", "frame"), FRAMES)
def test_a_clients_request_encodes_to_the_same_bytes(title: str, frame: bytes) -> None:
    header, message = decoded(frame)

    encoded = encode_request(
        header.api_key, header.api_version, header.correlation_id, header.client_id, message
    )

    assert encoded == len(frame).to_bytes(4, "big") + frame


@pytest.mark.parametrize("client", [path.stem for path in FILES])
def test_a_clients_batch_is_a_window_of_its_frame(client: str) -> None:
    topic = request_of(client, "Produce").topic_data[0]

    records = topic.partition_data[0].records

    assert isinstance(records, Window)
    # Magic 2, and the batch's own length, which does not count its first 12 bytes.
    assert records.to_bytes()[16] == 2
    assert int.from_bytes(records.to_bytes()[8:12], "big") == records.size - 12


@pytest.mark.parametrize(
    ("client", "codec"),
    [
        ("kafka-python", compression.GZIP),
        ("aiokafka", compression.SNAPPY),
        ("confluent-kafka", compression.ZSTD),
        ("java", compression.LZ4),
        ("java-4.1", compression.LZ4),
        ("kcat", compression.ZSTD),
    ],
)
def test_a_clients_compressed_batch_opens(client: str, codec: int) -> None:
    topic = request_of(client, "Produce").topic_data[0]
    batch = topic.partition_data[0].records.to_bytes()

    content = compression.decompress(codec, batch[61:], 1000)

    # The low bits of the attributes name the codec.
    assert batch[22] & 7 == codec
    assert b"golden value, " * 20 in content


def test_java_names_itself_in_api_versions() -> None:
    request = request_of("java", "ApiVersions")

    assert request.client_software_name == "apache-kafka-java"
    assert request.client_software_version == "4.4.0"


def test_a_consumer_is_told_from_a_replica_by_an_absent_tag() -> None:
    request = request_of("java", "Fetch")

    assert request.replica_state is None
    assert request.replica_id == -1


def test_librdkafka_creates_a_topic_with_its_settings() -> None:
    topic = request_of("confluent-kafka", "CreateTopics").topics[0]

    assert topic.name == "golden"
    assert (topic.configs[0].name, topic.configs[0].value) == ("retention.ms", "1000")
