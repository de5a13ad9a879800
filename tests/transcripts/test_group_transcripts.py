"""Groups as transcripts: text files of requests, time steps and exactly what comes of them.

A line that begins with `>` is a command; the indented lines below it are what happened, each with
its time in ms.  `TARRY_REWRITE=1 pytest tests/transcripts` writes what happens into the files
instead of comparing it; read the difference before it is committed.

    > join NAME [instance=I] [protocols=P,..] [metadata=M] [type=T] [session=MS] [rebalance=MS]
                [version=N] [forget]     as it joined before but for what is said;
                                         forget: without the id that it was given
    > sync NAME [NAME=ASSIGNMENT ..] [generation=N]
    > heartbeat NAME [generation=N]
    > leave NAME|instance:I ..
    > commit NAME|- TOPIC-PARTITION=OFFSET .. [generation=N]
    > wait MS            deadlines pass
    > hold, durable, fail ERROR       the log is slow from now on; catches up; refuses the newest
    > restart, unload, stall MS       the broker dies and is back; leads no more; was stopped
    > set delay|size VALUE

Member ids are shown as the client's name and a number: `a-1` is the first id that was given to
clients called a.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support.group_scene import HeartbeatAnswer, Scene

from tarry.base import errors
from tarry.group.classic.notes import (
    AssignmentMissing,
    BecameEmpty,
    BecameStable,
    GenerationBegan,
    RebalanceBegan,
    RoundChanged,
)
from tarry.group.classic.records import GroupMetadata
from tarry.group.classic.requests import (
    JoinAnswer,
    LeaveAnswer,
    LeavingMember,
    SyncAnswer,
)
from tarry.group.classic.round import PHASE_NAMES, Protocol
from tarry.group.decision import Decision
from tarry.group.notes import (
    AppendFailed,
    MemberRemoved,
    Note,
)
from tarry.group.offsets.records import OffsetCommitted
from tarry.group.offsets.requests import CommitAnswer, CommitPartition
from tarry.group.records import GroupRecord
from tarry.group.requests import Answer

FILES = sorted(Path(__file__).with_name("group").glob("*.txt"))
REWRITES = os.environ.get("TARRY_REWRITE") == "1"

UUID = re.compile(r"(\S+?)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")


class Player:
    """Plays a transcript and gathers what happens."""

    def __init__(self) -> None:
        self.scene = Scene()
        self.scene.on_decision = self.on_decision
        self.scene.on_answer = self.on_answer
        self.lines: list[str] = []
        # The id that each client was given last.
        self.ids: dict[str, str] = {}
        # How each client joined.
        self.options: dict[str, dict[str, str]] = {}
        self.askers: dict[int, str] = {}
        self.aliases: dict[str, str] = {}
        self.phase = 0

    def play(self, command: str) -> list[str]:
        """Carry out one command; what happened."""
        self.lines = []
        verb, *words = command.split()
        plain = [word for word in words if "=" not in word]
        options = dict(word.split("=", 1) for word in words if "=" in word)
        getattr(self, f"do_{verb}")(plain, options)
        return [f"  {line}" for line in self.lines]

    def say(self, text: str) -> None:
        self.lines.append(f"[{self.scene.now_ms}] {UUID.sub(self._alias, text)}")

    def _alias(self, match: re.Match[str]) -> str:
        name = match[1]
        known = self.aliases.get(match[0])
        if known is None:
            taken = [each for each in self.aliases.values() if each.rpartition("-")[0] == name]
            known = self.aliases[match[0]] = f"{name}-{len(taken) + 1}"
        return known

    # -- commands

    def do_join(self, plain: list[str], options: dict[str, str]) -> None:
        name = plain[0]
        options = self.options[name] = {**self.options.get(name, {}), **options}
        protocols = tuple(
            (each, options.get("metadata", "").encode())
            for each in options.get("protocols", "range").split(",")
            if each
        )
        self.asks(name)
        self.scene.join(
            "" if "forget" in plain else self.ids.get(name, ""),
            options.get("instance"),
            protocols=checked(protocols),
            protocol_type=options.get("type", "consumer"),
            session_ms=int(options.get("session", "10000")),
            rebalance_ms=int(options.get("rebalance", "60000")),
            client_id=name,
            version=int(options.get("version", "9")),
        )

    def do_sync(self, plain: list[str], options: dict[str, str]) -> None:
        generation = options.pop("generation", None)
        given = tuple((self.ids.get(name, name), text.encode()) for name, text in options.items())
        self.asks(plain[0])
        self.scene.sync(
            self.ids[plain[0]],
            None if generation is None else int(generation),
            self.instance_id(plain[0]),
            assignments=given,
        )

    def do_heartbeat(self, plain: list[str], options: dict[str, str]) -> None:
        generation = options.get("generation")
        self.asks(plain[0])
        self.scene.heartbeat(
            self.ids[plain[0]],
            None if generation is None else int(generation),
            self.instance_id(plain[0]),
        )

    def do_leave(self, plain: list[str], options: dict[str, str]) -> None:
        leaving = [
            LeavingMember("", name.removeprefix("instance:"))
            if name.startswith("instance:")
            else LeavingMember(self.ids.get(name, name))
            for name in plain
        ]
        self.asks(plain[0])
        self.scene.leave(*leaving)

    def do_commit(self, plain: list[str], options: dict[str, str]) -> None:
        generation = options.pop("generation", None)
        if generation is None:
            generation = "-1" if plain[0] == "-" else str(self.scene.group.round.generation_id)
        partitions = []
        for key, offset in options.items():
            topic, _, index = key.rpartition("-")
            partitions.append(CommitPartition(topic, int(index), int(offset)))
        self.asks(plain[0])
        self.scene.commit_offsets(
            self.ids.get(plain[0], ""),
            int(generation),
            self.instance_id(plain[0]),
            partitions=tuple(partitions),
        )

    def do_wait(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.advance(int(plain[0]))

    def do_hold(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.holds = True

    def do_durable(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.holds = False
        self.scene.commit()

    def do_fail(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.fail(getattr(errors, plain[0]))

    def do_restart(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.restart()

    def do_unload(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.unload()

    def do_stall(self, plain: list[str], options: dict[str, str]) -> None:
        self.scene.stall(int(plain[0]))

    def do_set(self, plain: list[str], options: dict[str, str]) -> None:
        key = {"delay": "group_initial_rebalance_delay_ms", "size": "group_max_size"}[plain[0]]
        self.scene.settings = replace(self.scene.settings, **{key: int(plain[1])})

    def instance_id(self, name: str) -> str | None:
        return self.options.get(name, {}).get("instance")

    def asks(self, name: str) -> None:
        """The next ticket is this client's."""
        self.askers[self.scene.tickets + 1] = name

    # -- what happens

    def on_decision(self, decision: Decision) -> None:
        for note in decision.notes:
            self.say(note_text(note))
        now = self.scene.group.round
        if now.phase != self.phase:
            self.phase = now.phase
            self.say(f"state: {PHASE_NAMES[now.phase]}, generation {now.generation_id}")
        for record in decision.records:
            self.say(f"log: {record_text(record)}")
        for wait in decision.heartbeats:
            if wait.ends:
                self.say(f"session of {wait.member_id} ends")
            elif wait.deadline_ms is None:
                self.say(f"session of {wait.member_id} is not watched: it waits")
            else:
                self.say(f"session of {wait.member_id} until {wait.deadline_ms}")
        if decision.has_moved and now.join_deadline_ms is not None:
            self.say(f"join phase until {now.join_deadline_ms}")
        if decision.has_moved and now.sync_deadline_ms is not None:
            self.say(f"sync phase until {now.sync_deadline_ms}, without {', '.join(now.unsynced)}")

    def on_answer(self, answer: Answer) -> None:
        name = self.askers.get(answer.ticket, "?")
        if isinstance(answer, JoinAnswer) and answer.member_id:
            fenced = answer.error_code in (errors.FENCED_INSTANCE_ID, errors.UNKNOWN_MEMBER_ID)
            if not fenced:
                self.ids[name] = answer.member_id
        self.say(f"{name} <- {answer_text(answer)}")


def checked(protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    """Metadata that names a protocol's own default, so that two of them differ."""
    return tuple((name, metadata or name.encode()) for name, metadata in protocols)


def answer_text(answer: Answer) -> str:
    if isinstance(answer, CommitAnswer):
        return "commit " + ", ".join(errors.error_name(x) for x in answer.partition_error_codes)
    kind = type(answer).__name__.removesuffix("Answer").lower()
    if answer.error_code != errors.NONE:
        text = f"{kind} {errors.error_name(answer.error_code)}"
        if answer.error_code == errors.MEMBER_ID_REQUIRED and isinstance(answer, JoinAnswer):
            text += f": {answer.member_id}"
        return text
    match answer:
        case JoinAnswer():
            text = f"join as {answer.member_id}: generation {answer.generation_id}"
            text += f", {answer.protocol_type}/{answer.protocol_name}, leader {answer.leader_id}"
            if answer.members:
                text += " of " + ", ".join(
                    each.member_id + (f" ({each.instance_id})" if each.instance_id else "")
                    for each in answer.members
                )
            return text + (", need not assign" if answer.skip_assignment else "")
        case SyncAnswer():
            return f"sync {answer.assignment.decode() or 'nothing'}"
        case LeaveAnswer():
            codes = ", ".join(errors.error_name(each) for each in answer.member_error_codes)
            return f"leave {codes}"
        case HeartbeatAnswer():
            return "heartbeat NONE"
        case _:
            return f"{kind} NONE"


def note_text(note: Note) -> str:
    match note:
        case MemberRemoved():
            who = f"member {note.member_id}"
            if note.instance_id is not None:
                who += f" ({note.instance_id})"
            if note.client_id:
                who += f" of client {note.client_id} at {note.client_host}"
            return f"removed {who}: {note.reason}, silent for {note.silent_ms} ms; {note.follows}"
        case RebalanceBegan():
            return f"rebalance of generation {note.generation_id}: {note.reason}"
        case RoundChanged():
            return f"the round goes on: {note.reason}"
        case GenerationBegan():
            return f"generation {note.generation_id} with {note.member_count} members"
        case BecameStable():
            return f"generation {note.generation_id} works, after {note.stood_ms} ms"
        case BecameEmpty():
            return f"generation {note.generation_id} is empty"
        case AssignmentMissing():
            return f"the leader forgot {', '.join(note.member_ids)}"
        case AppendFailed():
            return f"{note.what} failed: {errors.error_name(note.error_code)}"
        case _:
            raise AssertionError(note)


def record_text(record: GroupRecord) -> str:
    match record:
        case GroupMetadata():
            members = ", ".join(
                f"{row.member_id} {row.assignment.decode() or 'nothing'}" for row in record.members
            )
            protocol = f"{record.protocol_type}/{record.protocol_name}"
            return (
                f"generation {record.generation_id} {protocol} leader {record.leader_id}: "
                f"{members or 'nobody'}"
            )
        case OffsetCommitted():
            return f"{record.topic}-{record.partition} at {record.offset}"
        case _:
            return type(record).__name__


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_a_transcript_of_a_group_plays_as_it_is_written(path: Path) -> None:
    player = Player()
    played: list[str] = []
    written = path.read_text("utf-8")
    for line in written.splitlines():
        if line.startswith(">"):
            played += [line, *player.play(line[1:])]
        elif not line.startswith("  "):
            played.append(line)
    text = "\n".join(played) + "\n"
    if REWRITES:
        path.write_text(text, "utf-8")
    else:
        assert text == written


def test_every_transcript_says_what_it_shows_and_shows_something() -> None:
    assert len(FILES) >= 30
    for path in FILES:
        lines = path.read_text("utf-8").splitlines()
        assert lines[0].startswith("# ")
        assert any(line.startswith("  [") for line in lines)
