"""Actors of an audited day: each plays one client, which schedules, takes back, replaces and moves.

An actor sends, waits for its answers, and has a diary of what it wants to do later with what waits.
So of one record nobody asks two things at once, unless that is what is tried.
"""

from __future__ import annotations

import heapq
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from tests.support.audit.account import (
    ABSENT,
    ACKED,
    CANCEL,
    CANCEL_BY_HEADER,
    DOUBT,
    FIND,
    FOUND,
    MOVE,
    Account,
    Asked,
    Entrusted,
    Recurring,
    now_ms,
)
from tests.support.audit.senders import OURS, Letter, Sender, Told, make_sender
from tests.support.client.faces import make_face
from tests.support.interop.java_face import JavaProgram
from tests.support.patience import PATIENCE_S

from tarry.client import Admin

BY_TIME: Final = "day-time"
BY_HEADER: Final = "day-header"
# The leader's calendar at the append is the timestamp of its records.
STAMPED: Final = "day-stamped"
ALL_WAIT: Final = "day-default"
TOPICS: Final = (BY_TIME, BY_HEADER, STAMPED, ALL_WAIT)
DEFAULT_MS: Final = 3_000
FAR_MS: Final = 36 * 3_600_000
HOUR: Final = 60
CHANGES_MAX: Final = 4


@dataclass
class Play:
    """What all actors share."""

    account: Account
    addresses: str
    seed: int
    partitions: int
    # The longest that a record waits, but for those that wait beyond the day.
    due_ms_max: int
    pause_s: float
    is_over: threading.Event


class Actor(threading.Thread):
    """A client that is driven by chance."""

    def __init__(self, play: Play, client: str, number: int, program: JavaProgram | None) -> None:
        super().__init__(name=f"{client}-{number}", daemon=True)
        self.play = play
        self.client = client
        self.account = play.account
        self.random = random.Random(f"{play.seed}-{self.name}")
        self.count = 0
        self.diary: list[tuple[int, int, Callable[[], None]]] = []
        self.sender: Sender = make_sender(client, play.addresses, program)
        self.face = make_face("asyncio" if client == "aio" else "sync")
        timeout_ms = 60_000
        self.admin: Any = self.face.Admin(
            bootstrap_servers=play.addresses, default_api_timeout_ms=timeout_ms
        )
        # Of another one, which asks at the same time.
        self.rival = Admin(bootstrap_servers=play.addresses, default_api_timeout_ms=timeout_ms)

    def run(self) -> None:
        steps = self._steps()
        try:
            while not self.play.is_over.is_set():
                now = now_ms()
                if self.diary and self.diary[0][0] <= now:
                    heapq.heappop(self.diary)[2]()
                    continue
                self.random.choices([each for each, _ in steps], [n for _, n in steps])[0]()
                self._rest()
        except Exception as error:
            self.account.trouble(f"actor {self.name} ended: {error!r}")
            raise
        finally:
            self._close()

    def _close(self) -> None:
        self.sender.close()
        self.face.run(self.admin.close())
        self.face.close()
        self.rival.close()

    def _rest(self) -> None:
        """Wait for a while, or for the next line of the diary."""
        pause_s = self.random.uniform(0.0, 2 * self.play.pause_s)
        if self.diary:
            pause_s = min(pause_s, max(0.0, (self.diary[0][0] - now_ms()) / 1_000))
        self.play.is_over.wait(pause_s)

    def _steps(self) -> list[tuple[Callable[[], None], int]]:
        steps = [
            (self._send_one_by_header, 24),
            (self._send_after, 8),
            (self._send_default, 5),
            (self._send_at_once, 5),
            (self._send_far, 2),
            (self._send_recurring, 2),
        ]
        if self.client != "kcat":
            steps += [
                (self._send_one_by_time, 16),
                (self._send_batch_by_time, 8),
                (self._send_mixed_batch_by_time, 4),
                (self._send_batch_by_header, 12),
            ]
        if self.client in OURS or self.client == "confluent-kafka":
            steps.append((self._send_bad, 2))
        return steps

    # --- Sending

    def _next_uid(self) -> str:
        self.count += 1
        return f"{self.name}-{self.count}"

    def _due_ms(self) -> int:
        shortest_ms = 200
        longest_ms = self.play.due_ms_max
        # Most wait for a short time; some share a due time with others of other clients.
        after_ms = int(longest_ms * self.random.random() ** 2) + shortest_ms
        due_ms = now_ms() + after_ms
        return due_ms // 1_000 * 1_000 + 1_000 if self.random.random() < 0.2 else due_ms

    def _partition(self) -> int:
        return self.random.randrange(self.play.partitions)

    def _header_topic(self) -> str:
        return self.random.choice((BY_HEADER, STAMPED, STAMPED))

    def _send(self, records: list[Entrusted], letters: list[Letter]) -> None:
        self.account.entrust(records)
        for record, told in zip(records, self._try(letters), strict=True):
            record.answered_ms = now_ms()
            record.answer, record.offset, record.error = told.answer, told.offset, told.error

    def _try(self, letters: list[Letter]) -> list[Told]:
        try:
            return self.sender.send(letters)
        except Exception as error:
            # Some of them may have been sent.
            return [Told(DOUBT, error=repr(error)[:500]) for _ in letters]

    def _record(self, topic: str, partition: int, **fields: Any) -> Entrusted:
        return Entrusted(self._next_uid(), self.client, (topic, partition), now_ms(), **fields)

    def _letter(self, record: Entrusted) -> Letter:
        topic, partition = record.place
        return Letter(
            topic,
            partition,
            record.uid.encode(),
            record.due_ms,
            record.after_ms,
            record.schedule_id,
            is_by_timestamp=topic == BY_TIME,
        )

    def _send_one_by_time(self) -> None:
        record = self._record(BY_TIME, self._partition(), due_ms=self._due_ms())
        self._send([record], [self._letter(record)])

    def _send_batch_by_time(self) -> None:
        partition, due_ms = self._partition(), self._due_ms()
        count = self.random.randint(2, 12)
        records = [self._record(BY_TIME, partition, due_ms=due_ms) for _ in range(count)]
        self._send(records, [self._letter(each) for each in records])

    def _send_mixed_batch_by_time(self) -> None:
        """Each with a time of its own: in one batch they wait for the last one."""
        partition = self._partition()
        dues = [self._due_ms() for _ in range(self.random.randint(2, 6))]
        last_ms = max(dues)
        records = [
            self._record(BY_TIME, partition, due_ms=due_ms, with_until_ms=last_ms)
            for due_ms in dues
        ]
        self._send(records, [self._letter(each) for each in records])

    def _send_one_by_header(self) -> None:
        schedule_id = f"id-{self.name}-{self.count}" if self.random.random() < 0.7 else ""
        record = self._record(
            self._header_topic(),
            self._partition(),
            due_ms=self._due_ms(),
            schedule_id=schedule_id,
        )
        self._send([record], [self._letter(record)])
        self._plan_change(record, 1)

    def _send_batch_by_header(self) -> None:
        topic, partition = self._header_topic(), self._partition()
        records = []
        for number in range(self.random.randint(2, 8)):
            has_id = self.random.random() < 0.5
            is_at_once = self.random.random() < 0.1
            records.append(
                self._record(
                    topic,
                    partition,
                    due_ms=now_ms() - 1 if is_at_once else self._due_ms(),
                    schedule_id=f"id-{self.name}-{self.count}-{number}" if has_id else "",
                    is_by_header=True,
                )
            )
        last_ms = max(each.due_ms for each in records)
        for record in records:
            record.with_until_ms = -1 if record.schedule_id else last_ms
        self._send(records, [self._letter(each) for each in records])
        for record in records:
            self._plan_change(record, 1)

    def _send_after(self) -> None:
        after_ms = self.random.randint(100, self.play.due_ms_max)
        record = self._record(self._header_topic(), self._partition(), after_ms=after_ms)
        self._send([record], [self._letter(record)])

    def _send_default(self) -> None:
        partition = self._partition()
        count = self.random.randint(1, 5)
        records = [self._record(ALL_WAIT, partition, after_ms=DEFAULT_MS) for _ in range(count)]
        letters = [self._letter(each) for each in records]
        for each in letters:
            each.after_ms = -1
        self._send(records, letters)

    def _send_at_once(self) -> None:
        record = self._record(self._header_topic(), self._partition(), due_ms=0)
        letter = self._letter(record)
        letter.due_ms = -1
        self._send([record], [letter])

    def _send_far(self) -> None:
        schedule_id = f"far-{self.name}-{self.count}" if self.random.random() < 0.5 else ""
        record = self._record(
            self._header_topic(),
            self._partition(),
            due_ms=now_ms() + FAR_MS + self.random.randrange(FAR_MS),
            schedule_id=schedule_id,
        )
        self._send([record], [self._letter(record)])
        if self.random.random() < 0.3:
            self._plan_change(record, 1)

    def _send_bad(self) -> None:
        record = self._record(self._header_topic(), self._partition(), due_ms=0, is_bad=True)
        letter = self._letter(record)
        letter.due_ms = -1
        letter.headers.append(("x-deliver-after", b"soon"))
        self._send([record], [letter])

    def _send_recurring(self) -> None:
        step, first = self.random.choice(((1, 0), (1, 0), (2, 0), (2, 1), (3, 1)))
        uid = self._next_uid()
        now = now_ms()
        recurring = Recurring(
            uid,
            self.client,
            (self._header_topic(), self._partition()),
            now,
            frozenset(range(first, HOUR, step)),
            self.random.choice(("UTC", "Europe/Berlin", "Asia/Kolkata")),
            self.random.choice(("once", "skip", "all", "all")),
            f"cron-{uid}",
            self.random.choice((0, 0, 0, 3)),
            self.random.choice((-1, -1, -1, now + 180_000)),
        )
        self.account.recur(recurring)
        minutes = "*" if step == 1 else f"{first}-59/{step}"
        headers = [
            ("x-sched-cron", f"{minutes} * * * *".encode()),
            ("x-sched-tz", recurring.zone.encode()),
            ("x-sched-misfire", recurring.misfire.encode()),
            ("x-sched-id", recurring.schedule_id.encode()),
        ]
        if recurring.count:
            headers.append(("x-sched-count", b"%d" % recurring.count))
        if recurring.end_ms >= 0:
            headers.append(("x-sched-end", b"%d" % recurring.end_ms))
        letter = Letter(*recurring.place, uid.encode(), headers=list(headers))
        (told,) = self._try([letter])
        recurring.answered_ms = now_ms()
        recurring.answer, recurring.error = told.answer, told.error
        if told.answer == ACKED and self.random.random() < 0.4:
            at_ms = now_ms() + self.random.randrange(10 * self.play.due_ms_max)
            self._note(at_ms, lambda: self._cancel(uid, recurring.place, recurring.schedule_id))

    # --- Changing

    def _note(self, at_ms: int, do: Callable[[], None]) -> None:
        heapq.heappush(self.diary, (at_ms, self.count, do))
        self.count += 1

    def _plan_change(self, record: Entrusted, number: int) -> None:
        """Want something of a record that waits by its id, before it is due or just about then."""
        if not record.schedule_id or record.answer != ACKED or number > CHANGES_MAX:
            return
        if self.random.random() < 0.25:
            return
        now = now_ms()
        until_ms = min(record.due_ms + 500, now + self.play.due_ms_max)
        at_ms = self.random.randint(now, max(now, until_ms))
        if self.random.random() < 0.3:
            # Just as it is released.
            at_ms = max(now, until_ms - self.random.randrange(520))
        do = self.random.choices(
            (
                self._cancel_by_api,
                self._cancel_by_header,
                self._replace,
                self._move,
                self._find,
                self._race,
            ),
            (5, 4, 4, 5, 2, 2),
        )[0]
        self._note(at_ms, lambda: do(record, number))

    def _cancel_by_api(self, record: Entrusted, number: int) -> None:
        self._cancel(record.uid, record.place, record.schedule_id)
        if self.random.random() < 0.3:
            # What was answered stays true.
            self._note(
                now_ms() + self.random.randrange(self.play.due_ms_max),
                lambda: self._cancel(record.uid, record.place, record.schedule_id),
            )

    def _cancel(self, uid: str, place: tuple[str, int], schedule_id: str) -> None:
        topic, partition = place
        asked = self._begin(CANCEL, uid)
        self._answer(
            asked,
            lambda: self.face.run(
                self.admin.cancel_scheduled(topic, schedule_id, partition=partition)
            ),
        )

    def _cancel_by_header(self, record: Entrusted, number: int) -> None:
        asked = self._begin(CANCEL_BY_HEADER, record.uid)
        letter = self._cancelling(record)
        (told,) = self._try([letter])
        asked.answered_ms = now_ms()
        asked.outcome, asked.error = told.answer, told.error
        if self.random.random() < 0.4:
            self._cancel(record.uid, record.place, record.schedule_id)

    def _cancelling(self, record: Entrusted) -> Letter:
        topic, partition = record.place
        value = f"takes back {record.uid}".encode()
        return Letter(topic, partition, value, schedule_id=record.schedule_id, is_cancel=True)

    def _replace(self, record: Entrusted, number: int) -> None:
        topic, partition = record.place
        other = self._record(
            topic,
            partition,
            due_ms=self._due_ms(),
            schedule_id=record.schedule_id,
            replaces=record.uid,
        )
        self._send([other], [self._letter(other)])
        self._plan_change(other, number + 1)

    def _move(self, record: Entrusted, number: int) -> None:
        topic, partition = record.place
        due_ms = self._due_ms() if self.random.random() < 0.9 else now_ms() - 1
        asked = self._begin(MOVE, record.uid, due_ms)
        self._answer(
            asked,
            lambda: self.face.run(
                self.admin.move_scheduled(topic, due_ms, record.schedule_id, partition=partition)
            ),
        )
        self._plan_change(record, number + 1)

    def _find(self, record: Entrusted, number: int) -> None:
        topic, partition = record.place
        asked = self._begin(FIND, record.uid)
        try:
            listed = self.face.run(
                self.admin.find_scheduled(topic, record.schedule_id, partition=partition)
            )
        except Exception as error:
            asked.outcome, asked.error = DOUBT, repr(error)[:500]
        else:
            asked.outcome = FOUND if listed else ABSENT
            for entry in listed:
                asked.due_ms = entry.due_ms
                if [each.value for each in entry.records or []] != [record.uid.encode()]:
                    self.account.trouble(f"{record.uid}: found {entry} by its id")
        asked.answered_ms = now_ms()
        self._plan_change(record, number + 1)

    def _race(self, record: Entrusted, number: int) -> None:
        """Take it back twice at the same time."""
        topic, partition = record.place
        asked = self._begin(CANCEL, record.uid)
        other = threading.Thread(
            target=self._answer,
            args=(
                asked,
                lambda: self.rival.cancel_scheduled(topic, record.schedule_id, partition=partition),
            ),
        )
        other.start()
        if self.random.random() < 0.5:
            self._cancel(record.uid, record.place, record.schedule_id)
        else:
            self._cancel_by_header(record, number)
        other.join(PATIENCE_S)

    def _begin(self, what: str, uid: str, due_ms: int = -1) -> Asked:
        asked = Asked(what, uid, self.name, now_ms(), due_ms)
        self.account.ask(asked)
        return asked

    def _answer(self, asked: Asked, ask: Callable[[], Any]) -> None:
        try:
            told = ask()
        except Exception as error:
            asked.outcome, asked.error = DOUBT, repr(error)[:500]
        else:
            asked.offset, asked.is_repeated = told.offset, told.is_repeated
            asked.outcome = told.outcome
        asked.answered_ms = now_ms()


def play_all(play: Play, actors: list[Actor], until_s: float) -> None:
    """Let all play until a time of the monotonic clock; see each of them to its end."""
    for each in actors:
        each.start()
    while time.monotonic() < until_s and any(each.is_alive() for each in actors):
        play.is_over.wait(0.2)
    play.is_over.set()
    for each in actors:
        each.join(PATIENCE_S)
        if each.is_alive():
            play.account.trouble(f"actor {each.name} did not end")
