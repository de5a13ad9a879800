"""Load for bench/schedule.py: a broker, and connections that cost less than what it does for them.

Batches are built once; where each needs a due time of its own, times and CRC are patched in.
Produce requests go in version 7, where the batch is the end of the frame and every answer has the
same size: an answer is counted, not decoded.

    schedule_load.py pings ADDRESS TOPIC END    one produce at a time, until that time of the wall
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from struct import pack_into, unpack_from
from typing import Final, NamedTuple, Self

from peers import ROOT, STOP_SECONDS_MAX

from processes import cpu_seconds
from tarry.client import Admin, NewTopic
from tarry.protocol.api_keys import FETCH, LIST_OFFSETS, PRODUCE
from tarry.protocol.frames import encode_request
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    decode_fetch_response,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
    decode_list_offsets_response,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.records.builder import BatchBuilder
from tarry.wire.crc32c import crc32c
from tarry.wire.reader import Reader, Window

PARTITIONS: Final = 4
PATIENCE_S: Final = 600.0

PRODUCE_VERSION: Final = 7
FETCH_VERSION: Final = 11
LIST_OFFSETS_VERSION: Final = 2
LATEST: Final = -1
FETCH_PARTITION_BYTES: Final = 1 << 20
FETCH_BYTES: Final = 16 << 20
FETCH_WAIT_MS: Final = 500

# Places in a batch of format v2.
_LENGTH_AT: Final = 8
_CRC_AT: Final = 17
_CRC_FROM: Final = 21
_LAST_DELTA_AT: Final = 23
_TIMES_AT: Final = 27
_MAX_TIME_AT: Final = 35
_COUNT_AT: Final = 57
_LENGTH_OVERHEAD: Final = 12


class Server:
    """Broker of a checkout on a directory; it can be ended and begun again.

    `begin_s` is the time from the start of its process to its ready line.  `policy` says when it
    flushes, from the next begin on.  Where `profiles` is given, cProfile writes there what each
    process did.
    """

    def __init__(
        self,
        directory: Path,
        tree: Path = ROOT,
        profiles: Path | None = None,
        policy: str = "os",
    ) -> None:
        given = {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(directory),
            # A row writes gigabytes, which go with its topic.
            "log.segment.delete.delay.ms": "0",
        }
        self._words = ["serve", *(f"--set={key}={value}" for key, value in given.items())]
        self._name = directory.name
        self.policy = policy
        self._tree = tree
        self._profiles = profiles
        self._begins = 0
        self.begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end(signal.SIGTERM)

    def begin(self) -> None:
        command = [sys.executable]
        if self._profiles is not None:
            self._begins += 1
            name = f"{self._name}-{self._begins}.prof"
            command += ["-m", "cProfile", "-o", str(self._profiles / name)]
        self.begun_s = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "-m", "tarry", *self._words, f"--set=flush.policy={self.policy}"],
            env=environment(self._tree),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self.begin_s = time.perf_counter() - self.begun_s
        if "ready" not in line:
            raise SystemExit(f"the broker of {self._tree} did not start")
        self.address = "127.0.0.1:" + line.partition(";")[0].rpartition(":")[2].strip()

    def end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(STOP_SECONDS_MAX)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def cpu_s(self) -> float:
        return cpu_s(self.process.pid)

    def resident_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")


def environment(tree: Path) -> dict[str, str]:
    """Return the environment in which `-m tarry` is that of a checkout."""
    return os.environ | {"PYTHONPATH": str(tree / "src")}


def cpu_s(pid: int) -> float:
    """Return CPU seconds of a process: by its clock, which counts ns, else from /proc."""
    try:
        # Linux derives the number of a process's CPU clock from its pid like this; the C library's
        # clock_getcpuclockid does the same.
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:
        return cpu_seconds(pid)


def make_topic(
    address: str, name: str, configs: dict[str, str], replicas: list[int] | None = None
) -> None:
    """Make a topic; where replicas are named, the first one leads all partitions."""
    if replicas is None:
        wanted = NewTopic(name, PARTITIONS, 1, configs)
    else:
        wanted = NewTopic(name, configs=configs, assignment=[replicas] * PARTITIONS)
    with Admin(bootstrap_servers=address) as admin:
        admin.create_topics([wanted])


def delete_topic(address: str, name: str) -> None:
    with Admin(bootstrap_servers=address) as admin:
        admin.delete_topics([name])


# -- frames


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    """Return a produce request, whose end is the batch."""
    data = PartitionProduceData(partition, Window(batch, 0, len(batch)))
    request = ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=[data])])
    return encode_request(PRODUCE, PRODUCE_VERSION, 1, "bench", request)


def plain_batch(records: int, value_size: int) -> bytes:
    """Return a batch whose records have the same time, which `TimedFrames` sets."""
    builder = BatchBuilder()
    for _ in range(records):
        builder.append(1, None, b"v" * value_size)
    return builder.build()


def wish_batch(value_size: int, wishes: Iterable[Mapping[str, bytes]]) -> bytes:
    """Return a batch with a record for each wish, which its headers say."""
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for wish in wishes:
        builder.append(now_ms, None, b"v" * value_size, list(wish.items()))
    return builder.build()


class TimedFrames:
    """Produce requests to the partitions of a topic, made of one batch at any time."""

    def __init__(self, topic: str, batch: bytes) -> None:
        self._frames = [
            bytearray(produce_frame(topic, partition, batch)) for partition in range(PARTITIONS)
        ]
        self._batch_at = len(self._frames[0]) - len(batch)

    def at(self, partition: int, due_ms: int) -> bytes:
        """Return the request whose records have this timestamp."""
        frame, start = self._frames[partition], self._batch_at
        pack_into(">qq", frame, start + _TIMES_AT, due_ms, due_ms)
        crc = crc32c(memoryview(frame)[start + _CRC_FROM :])
        pack_into(">I", frame, start + _CRC_AT, crc)
        return bytes(frame)

    def spread(self, due_ms: Iterable[int]) -> Iterator[bytes]:
        """Return a request for each time, to the partitions in turn."""
        for number, due in enumerate(due_ms):
            yield self.at(number % PARTITIONS, due)


# -- connections


class Seen(NamedTuple):
    """Batch that a consumer has seen: its largest timestamp, its records, and the time then."""

    timestamp_ms: int
    record_count: int
    seen_ms: float


class Connection:
    """Connection that asks one thing at a time, but for produce requests."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._buffer = memoryview(bytearray(FETCH_BYTES + (1 << 20)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def produce(self, topic: str, frames: Iterable[bytes], in_flight: int) -> int:
        """Send the requests, so many unanswered ones at most; return their number."""
        each = max(in_flight // 2, 1)
        rest = iter(frames)
        count = unanswered = 0
        while chunk := list(itertools.islice(rest, each)):
            self._socket.sendall(b"".join(chunk))
            self._take_answers(topic, unanswered)
            unanswered = len(chunk)
            count += unanswered
        self._take_answers(topic, unanswered)
        return count

    def _take_answers(self, topic: str, count: int) -> None:
        size = 52 + len(topic)
        while count > 0:
            some = min(count, len(self._buffer) // size)
            data = bytes(self._receive(some * size))
            code_at = 22 + len(topic)
            if any(data[code_at::size]) or any(data[code_at + 1 :: size]):
                code = max(
                    unpack_from(">h", data, at + code_at)[0] for at in range(0, len(data), size)
                )
                raise SystemExit(f"{topic}: a produce was refused with error code {code}")
            count -= some

    def end_offsets(self, topic: str) -> list[int]:
        """Return the high watermark of each partition."""
        wanted = [ListOffsetsPartition(each, -1, LATEST) for each in range(PARTITIONS)]
        request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic(topic, wanted)])
        reader = self._ask(LIST_OFFSETS, LIST_OFFSETS_VERSION, request)
        answer = decode_list_offsets_response(reader, LIST_OFFSETS_VERSION)
        found = {each.partition_index: each.offset for each in answer.topics[0].partitions}
        return [found[each] for each in range(PARTITIONS)]

    def wait_for_records(self, topic: str, count: int, pause_s: float = 0.02) -> None:
        """Wait until the topic has so many records."""
        end_s = time.monotonic() + PATIENCE_S
        while sum(self.end_offsets(topic)) < count:
            if time.monotonic() > end_s:
                raise SystemExit(f"{topic}: {count} records did not come in {PATIENCE_S:.0f} s")
            time.sleep(pause_s)

    def read(self, topic: str, offsets: list[int], count: int) -> list[Seen]:
        """Read from these offsets on, which are moved, until so many records were seen."""
        seen: list[Seen] = []
        end_s = time.monotonic() + PATIENCE_S
        while count > 0:
            if time.monotonic() > end_s:
                raise SystemExit(f"{topic}: {count} records were not read in {PATIENCE_S:.0f} s")
            wanted = [
                FetchPartition(each, fetch_offset=offset, partition_max_bytes=FETCH_PARTITION_BYTES)
                for each, offset in enumerate(offsets)
            ]
            request = FetchRequest(
                max_wait_ms=FETCH_WAIT_MS,
                min_bytes=1,
                max_bytes=FETCH_BYTES,
                topics=[FetchTopic(topic, partitions=wanted)],
            )
            reader = self._ask(FETCH, FETCH_VERSION, request)
            seen_ms = time.time() * 1000
            answer = decode_fetch_response(reader, FETCH_VERSION)
            for part in answer.responses[0].partitions:
                if part.error_code:
                    raise SystemExit(f"{topic}: a fetch was refused with {part.error_code}")
                if isinstance(part.records, Window):
                    count -= _walk(part.records, part.partition_index, offsets, seen, seen_ms)
        return seen

    def _ask(self, key: int, version: int, request: FetchRequest | ListOffsetsRequest) -> Reader:
        self._socket.sendall(encode_request(key, version, 1, "bench", request))
        (size,) = unpack_from(">i", self._receive(4))
        data = bytes(self._receive(size))
        # Behind the correlation id.
        return Reader(data, 4, size)

    def _receive(self, size: int) -> memoryview:
        if size > len(self._buffer):
            self._buffer = memoryview(bytearray(size))
        view = self._buffer[:size]
        at = 0
        while at < size:
            received = self._socket.recv_into(view[at:])
            if received == 0:
                raise SystemExit("the broker has closed a connection")
            at += received
        return view


def _walk(
    records: Window, partition: int, offsets: list[int], seen: list[Seen], seen_ms: float
) -> int:
    """Note the whole batches of a fetched partition; return the count of their records."""
    data, at, end = records.data, int(records.start), int(records.end)
    count = 0
    while at + _COUNT_AT + 4 <= end:
        base_offset, length = unpack_from(">qi", data, at)
        if at + _LENGTH_OVERHEAD + length > end:
            break
        (timestamp_ms,) = unpack_from(">q", data, at + _MAX_TIME_AT)
        (record_count,) = unpack_from(">i", data, at + _COUNT_AT)
        (last_delta,) = unpack_from(">i", data, at + _LAST_DELTA_AT)
        offset = base_offset + last_delta + 1
        if offset > offsets[partition]:
            offsets[partition] = offset
            seen.append(Seen(timestamp_ms, record_count, seen_ms))
            count += record_count
        at += _LENGTH_OVERHEAD + length
    return count


# -- latency


def percentile(sorted_values: list[float], share: float) -> float:
    return sorted_values[int(share * (len(sorted_values) - 1))] if sorted_values else float("nan")


class Ping(NamedTuple):
    """Request that was alone on its connection: when it went and how long its answer took."""

    at_ms: float
    latency_ms: float


def pings(connection: Connection, topic: str, frames: Iterable[bytes]) -> Iterator[Ping]:
    """Send one request after the other, as fast as they are answered."""
    for frame in frames:
        at_ms = time.time() * 1000
        begun_s = time.perf_counter()
        connection.produce(topic, (frame,), 1)
        yield Ping(at_ms, (time.perf_counter() - begun_s) * 1000)


def begin_pings(address: str, topic: str, end_ms: float) -> subprocess.Popen[str]:
    """Begin pings in a process of their own: they must not wait for what this one does."""
    return subprocess.Popen(
        [sys.executable, __file__, "pings", address, topic, str(end_ms)],
        stdout=subprocess.PIPE,
        text=True,
    )


def pings_of(process: subprocess.Popen[str]) -> list[Ping]:
    """Return the pings of a process when it has ended."""
    told, _ = process.communicate(timeout=PATIENCE_S)
    return [Ping(*each) for each in json.loads(told)]


def latencies(found: list[Ping], from_ms: float, to_ms: float) -> list[float]:
    """Return in order how long the pings took that were sent between two times, in ms."""
    return sorted(each.latency_ms for each in found if from_ms <= each.at_ms <= to_ms)


def main() -> None:
    _, _, address, topic, end = sys.argv
    frame = produce_frame(topic, 0, plain_batch(1, 100))
    found: list[Ping] = []
    with Connection(address) as connection:
        for ping in pings(connection, topic, itertools.repeat(frame)):
            found.append(ping)
            if ping.at_ms > float(end):
                break
    print(json.dumps(found))


if __name__ == "__main__":
    main()
