"""kcat, which is a command line over librdkafka.

Records go in as lines "key TAB value", so what it writes is text.  With -Z empty keys and values
become null; headers count for all lines of one run.  So a run ends where the next record needs
other options.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import IO, Final

from tests.support.interop.client_face import CODECS, STEP_SECONDS_MAX, ClientMissing, ProducerFace
from tests.support.interop.records_sent import Header, ReadRecord, SentRecord, text_records
from tests.support.patience import PATIENCE_S

# The output of -f: a line of numbers and headers, then key, value and the end of the line.
FORMAT: Final = r"%o %T %K %S %h\n%k%s\n"

KEY_DELIMITER: Final = b"\t"


class KcatProducer:
    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.options: list[str] = []
        self.run: subprocess.Popen[bytes] | None = None

    def send(self, topic: str, partition: int, record: SentRecord) -> None:
        options = ["-P", "-E", "-q", "-t", topic, "-p", str(partition), "-K", r"\t"]
        if record.key is None or record.value is None:
            options.append("-Z")
        for name, value in record.headers:
            options += ["-H", name if value is None else f"{name}={value.decode()}"]
        if self.run is None or options != self.options:
            self.flush()
            self.options = options
            self.run = subprocess.Popen([*self.command, *options], stdin=subprocess.PIPE)
        stdin = self.run.stdin
        assert stdin is not None
        stdin.write((record.key or b"") + KEY_DELIMITER + (record.value or b"") + b"\n")
        stdin.flush()

    def flush(self) -> None:
        if self.run is None:
            return
        run, self.run = self.run, None
        assert run.stdin is not None
        run.stdin.close()
        assert run.wait(STEP_SECONDS_MAX) == 0

    def close(self) -> None:
        self.flush()


class KcatFace:
    name = "kcat"
    codecs = CODECS
    has_admin = False

    def __init__(self, address: str) -> None:
        if shutil.which("kcat") is None:
            raise ClientMissing("kcat is not installed (apt install kcat)")
        # It gives the broker five seconds for the first answer: on a busy machine that is little.
        self.command = ["kcat", "-b", address, "-m", str(PATIENCE_S)]
        named = re.search(rb"Version (\S+) .*?librdkafka ([\d.]+)", self.output("-V"), re.DOTALL)
        assert named is not None
        self.version = f"{named[1].decode()} (librdkafka {named[2].decode()})"

    def output(self, *words: str) -> bytes:
        done = subprocess.run(
            [*self.command, *words], capture_output=True, timeout=STEP_SECONDS_MAX, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def records(self) -> list[SentRecord]:
        return text_records()

    def create_topic(self, topic: str, partitions: int, configs: dict[str, str]) -> None:
        # It cannot: its first record makes the topic, with the broker's settings.
        assert partitions == 1
        assert not configs

    def delete_topic(self, topic: str) -> None:
        raise NotImplementedError("kcat deletes no topics")

    def producer(
        self, codec: str = "none", acks: str = "all", *, is_idempotent: bool = True
    ) -> ProducerFace:
        settings = {
            "compression.codec": codec,
            "acks": acks,
            "enable.idempotence": str(is_idempotent).lower(),
            "reconnect.backoff.max.ms": "200",
            "linger.ms": "5",
            # The broker's own limit: the megabyte with its key is just above librdkafka's.
            "message.max.bytes": "1048588",
        }
        words = [word for key, value in settings.items() for word in ("-X", f"{key}={value}")]
        return KcatProducer([*self.command, *words])

    def read(self, topic: str, partition: int, offset: int, count: int) -> list[ReadRecord]:
        words = ["-C", "-E", "-q", "-t", topic, "-p", str(partition), "-o", str(offset)]
        command = [*self.command, *words, "-c", str(count), "-f", FORMAT]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            found = [read_record(run.stdout) for _ in range(count)]
            assert run.wait(STEP_SECONDS_MAX) == 0
        return found

    def end_offset(self, topic: str, partition: int) -> int:
        return self.query(topic, partition, -1)

    def offset_for_time(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        offset = self.query(topic, partition, timestamp_ms)
        return offset if offset >= 0 else None

    def query(self, topic: str, partition: int, timestamp_ms: int) -> int:
        answer = self.output("-Q", "-t", f"{topic}:{partition}:{timestamp_ms}").decode()
        return int(answer.split("offset ")[1].split()[0])

    def close(self) -> None:
        return


def read_record(output: IO[bytes]) -> ReadRecord:
    offset, timestamp, key_size, value_size, headers = output.readline().split(b" ", 4)
    key = read_sized(output, int(key_size))
    value = read_sized(output, int(value_size))
    assert output.read(1) == b"\n"
    sent = SentRecord(value, key, headers_of(headers.rstrip(b"\n")), int(timestamp))
    return ReadRecord(int(offset), sent)


def read_sized(output: IO[bytes], size: int) -> bytes | None:
    return None if size < 0 else output.read(size)


def headers_of(text: bytes) -> tuple[Header, ...]:
    pairs = [pair.partition(b"=") for pair in text.split(b",") if pair]
    return tuple((name.decode(), value) for name, _, value in pairs)
