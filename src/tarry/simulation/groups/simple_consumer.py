"""Simple consumer: commits for a group without members, and reads what it has committed."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tarry.protocol.messages.offset_fetch import OffsetFetchResponse
from tarry.simulation.clients.simulated_client import Delay, Script, ScriptedClient
from tarry.simulation.groups.context import OF_THE_COORDINATOR, GroupsContext
from tarry.simulation.groups.history import Register

_PAUSE_MS_MAX: Final = 600
# The last version whose commits have a time of their own, after which they expire.
_VERSION_OF_RETENTION: Final = 4
_RETENTION_MS_MAX: Final = 20_000
# Errors to expect: a deleted topic has no offsets, and a coordinator may be away.
_PASSING: Final = (errors.UNKNOWN_TOPIC_OR_PARTITION, *OF_THE_COORDINATOR)


class SimpleConsumer(ScriptedClient):
    """Sole committer of its group; an administrator may delete the group."""

    def __init__(self, groups_context: GroupsContext, name: str, group: str) -> None:
        super().__init__(groups_context.context, name)
        self._groups = groups_context
        self._group = group
        self._offset = 0

    def script(self) -> Script:
        context = self.context
        while not context.is_quiet:
            yield Delay(1 + context.random.randrange(_PAUSE_MS_MAX))
            registers = self._some_registers()
            if not registers:
                continue
            if context.random.randrange(3) == 0:
                yield from self._read(registers)
            else:
                yield from self._commit(registers)

    def _some_registers(self) -> list[Register]:
        random = self.context.random
        return [
            (self._group, topic.name, index)
            for topic in self.context.alive_topics()
            for index in range(topic.partitions)
            if random.randrange(2)
        ]

    def _read(self, registers: list[Register]) -> Script:
        is_all = self.context.random.randrange(2) == 0
        if is_all:
            registers = self._groups.registers(self._group)
        query = self._groups.fetch_offsets(self._group, None if is_all else registers)
        outcome = yield query
        if outcome is not None and isinstance(outcome.answer, OffsetFetchResponse):
            self._groups.take_offsets(
                self.name, self._group, registers, outcome.exchange, outcome.answer
            )

    def _commit(self, registers: list[Register]) -> Script:
        writes = []
        for register in registers:
            # At times the offset goes back, like that of a user who wants to read again.
            self._offset = max(0, self._offset + self.context.random.randrange(-3, 9))
            writes.append(self._groups.new_write(register, self.name, self._offset))
        query = self._groups.commit(self._group, writes)
        request = query.request
        assert isinstance(request, OffsetCommitRequest)
        if query.version <= _VERSION_OF_RETENTION and self.context.is_chance(300):
            request.retention_time_ms = self.context.random.randrange(_RETENTION_MS_MAX)
        outcome = yield query
        if outcome is None or not isinstance(outcome.answer, OffsetCommitResponse):
            return
        for code in self._groups.take_commit(writes, outcome.answer).values():
            if code != errors.NONE and code not in _PASSING:
                self._groups.unexpected(self.name, "OffsetCommit", code)
