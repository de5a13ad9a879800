"""A member that is `tarry consume --group`."""

from __future__ import annotations

import re
import sys
from typing import Final

from tests.support.interop.group_members import RECORD, CommandMember, Watch, as_options, owned

# "NAME: reads TOPIC:0-2,5 (generation 3, range)"; nothing to read names no topic.
READS: Final = re.compile(rb": (?:reads \S+:([\d,-]+)|has nothing to read) \(generation ")


class TarryMember(CommandMember):
    """Commits once a second, and says nothing of it."""

    def __init__(self, name: str, watch: Watch, words: list[str]) -> None:
        address, group, topic, assignor, session_ms, heartbeat_ms = words
        settings = {
            "session.timeout.ms": session_ms,
            "heartbeat.interval.ms": heartbeat_ms,
            "reconnect.backoff.max.ms": "200",
        }
        options = [*as_options(settings), "--assignor", assignor, "--follow", "-f", RECORD]
        tarry = [sys.executable, "-m", "tarry", "consume", topic, "-b", address, "-G", group]
        super().__init__(name, watch, [*tarry, *options])

    def hear(self, line: bytes) -> None:
        words = line.split()
        if len(words) == 3 and words[0].isdigit():
            self.tell("read", [[int(words[0]), int(words[1]), words[2].decode()]])
            return
        self.errors.append(line)
        found = READS.search(line)
        if found is not None:
            had, has = owned(self), numbers_of(found[1] or b"")
            for what, partitions in (("revoked", had - has), ("assigned", has - had)):
                if partitions:
                    self.tell(what, sorted(partitions))


def numbers_of(ranges: bytes) -> frozenset[int]:
    """The numbers of `0-2,5`."""
    found: set[int] = set()
    for span in ranges.split(b",") if ranges else ():
        first, _, last = span.partition(b"-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)
