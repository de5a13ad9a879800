"""A world for the steps of the sink: a directory, brokers' logs and drivers, drawn from a seed.

Drivers are the product's own steps; each effect is carried out here.  Between any two effects, and
before or after the one under way, a driver may die, sleep for days or get a twin.  Requests may be
lost, answered in vain, or arrive late, and a worker may write where nobody else sees it.  After
each effect every open plan must have its files.  An auditor counts the rows of each micro-batch in
the logs.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from typing import Any

from tarry.base.errors import OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID
from tarry.base.ids import TopicPartition
from tarry.client.core.publisher.look_back import SeenBatch, SeenRange
from tarry.client.core.publisher.send import (
    ACCEPTED,
    FORGOTTEN,
    OUT_OF_ORDER,
    UNCLEAR,
    SendOutcome,
)
from tarry.client.errors import BrokerError
from tarry.link.errors import ConnectionLost
from tarry.records.batch import SEQUENCE_MAX
from tarry.spark.writing import effects
from tarry.spark.writing.effects import LookedBack, SentRound, StoredPlan
from tarry.spark.writing.plan import (
    Noted,
    Plan,
    PlannedBatch,
    PlannedFile,
    Share,
    SinkRefused,
    TaskOutput,
    TaskPart,
    decode_plan,
    encode_plan,
)
from tarry.spark.writing.steps import SinkSteps

HOUR_MS = 3_600_000
EXPIRATION_MS = 24 * HOUR_MS
# A request is on its way no longer than this.
LATE_MS = 12 * HOUR_MS

Rows = tuple[str, ...]


class ModelLog:
    """Log of one partition with an idempotent leader: the last five batches of each producer."""

    def __init__(self, refuses_unknown: bool) -> None:
        self.refuses_unknown = refuses_unknown
        self.batches: list[tuple[int, SeenBatch, int, Rows]] = []
        self.end_offset = 0
        self.producers: dict[int, tuple[int, list[tuple[int, int]]]] = {}

    def append(self, producer_id: int, first: int, rows: Rows, now_ms: int) -> SendOutcome:
        last = (first + len(rows) - 1) & SEQUENCE_MAX
        seen_ms, known = self.producers.get(producer_id, (0, []))
        if known and now_ms - seen_ms >= EXPIRATION_MS:
            known = []
        if (first, last) in known:
            return SendOutcome(ACCEPTED)
        if known and first != (known[-1][1] + 1) & SEQUENCE_MAX:
            error = BrokerError(OUT_OF_ORDER_SEQUENCE_NUMBER, f"{first} after {known[-1][1]}")
            return SendOutcome(OUT_OF_ORDER, error)
        if not known and self.refuses_unknown and first != 0:
            return SendOutcome(FORGOTTEN, BrokerError(UNKNOWN_PRODUCER_ID, "unknown"))
        end = self.end_offset + len(rows)
        seen = SeenBatch(self.end_offset, end - 1, 0, first, last)
        self.batches.append((producer_id, seen, now_ms, rows))
        self.end_offset = end
        self.producers[producer_id] = (now_ms, [*known, (first, last)][-5:])
        return SendOutcome(ACCEPTED)


class Request:
    """Batch on its way to a leader."""

    def __init__(self, place: TopicPartition, share: Share, sequence: int, rows: Rows) -> None:
        self.place = place
        self.producer_id = share.producer_id
        self.sequence = sequence
        self.rows = rows


class ModelDriver:
    """Driver that runs micro-batches from the first one that is not committed."""

    def __init__(self, world: SinkWorld, number: int) -> None:
        self.world = world
        self.number = number
        self.batch_id = world.committed + 1
        self.steps: Generator[Any, Any, Any] | None = None
        self.result: object = None
        self.asleep_until_ms = 0
        # The effect that it was about to ask for when it fell asleep.
        self.pending: object = None
        # Bytes that it has not flushed are lost with it.
        self.unflushed: list[str] = []

    def begin(self) -> None:
        outputs = self.world.run_tasks(self.batch_id)
        self.steps = self.world.make_steps().commit(self.batch_id, outputs)
        self.result = None


class SinkWorld:
    """World of one seed; `make_steps` and `plan_is_durable` are for planted mistakes."""

    def __init__(
        self, seed: int, make_steps: Callable[[], SinkSteps] | None = None, *, flushes: bool = True
    ) -> None:
        self.random = random.Random(seed)
        self.make_steps = make_steps or (lambda: SinkSteps("q", EXPIRATION_MS))
        self.flushes = flushes
        self.now_ms = 1_000_000
        self.refuses_unknown = self.random.random() < 0.3
        self.places = [("a", 0), ("a", 1), ("b", 0)][: self.random.randint(1, 3)]
        self.logs = {place: ModelLog(self.refuses_unknown) for place in self.places}
        self.files: dict[str, dict[TopicPartition, list[Rows]]] = {}
        self.plans: dict[str, bytes] = {}
        self.done: set[int] = set()
        self.committed = -1
        self.batches = self.random.randint(2, 6)
        self.next_producer = 0
        self.next_file = 0
        self.late: list[tuple[int, Request]] = []
        self.rows = {
            batch_id: [f"{batch_id}.{row}" for row in range(self.random.randint(0, 20))]
            for batch_id in range(self.batches)
        }
        self.trouble = self.random.choice([0.0, 0.05, 0.2, 0.4])
        self.story: list[str] = []
        # Plans that were open without their files, each once, in the order in which they were seen.
        self.bare_plans: dict[str, None] = {}

    # --- Spark

    def run_tasks(self, batch_id: int) -> tuple[TaskOutput, ...]:
        """Write the rows of a micro-batch to files, shared out in another way each time."""
        draw = self.random
        rows = list(self.rows[batch_id])
        draw.shuffle(rows)
        tasks = draw.randint(1, 3)
        outputs = [self._write_file(rows[task::tasks]) for task in range(tasks)]
        return tuple(outputs)

    def _write_file(self, rows: list[str]) -> TaskOutput:
        if not rows:
            return TaskOutput()
        draw = self.random
        name = f"f{self.next_file}"
        self.next_file += 1
        content: dict[TopicPartition, list[Rows]] = {}
        while rows:
            place = draw.choice(self.places)
            count = draw.randint(1, 3)
            content.setdefault(place, []).append(tuple(rows[:count]))
            rows = rows[count:]
        if draw.random() < self.trouble * 0.1:
            self.story.append(f"a worker writes {name} to a disk of its own")
        else:
            self.files[name] = content
        parts = tuple(
            TaskPart(*place, tuple(PlannedBatch(0, 0, 0, len(rows)) for rows in batches))
            for place, batches in content.items()
        )
        return TaskOutput(PlannedFile(name, 0, 0), parts)

    # --- Runs

    def run(self) -> list[str]:
        """Run to the end; return what is wrong."""
        drivers = [ModelDriver(self, 0)]
        made = 1
        for _ in range(4_000):
            if self.committed == self.batches - 1 or not drivers:
                break
            if made < 8 and self.random.random() < self.trouble * 0.1:
                drivers.append(ModelDriver(self, made))
                made += 1
            self._pass_time(drivers)
            awake = [one for one in drivers if one.asleep_until_ms <= self.now_ms]
            driver = self.random.choice(awake)
            if not self._move(driver):
                drivers.remove(driver)
            if not drivers:
                drivers.append(ModelDriver(self, made))
                made += 1
        self.trouble = 0
        for driver in drivers:
            driver.asleep_until_ms = 0
        # Those that slept wake up, and late requests arrive.
        for _ in range(3_000):
            if not drivers:
                break
            driver = self.random.choice(drivers)
            if not self._move(driver):
                drivers.remove(driver)
            self._pass_time(drivers)
        last = ModelDriver(self, made)
        for _ in range(2_000):
            if not self._move(last):
                break
        self.now_ms += LATE_MS
        self._deliver_late()
        return self.audit()

    def run_and_tell(self) -> list[str]:
        """Run to the end; return what happened."""
        self.run()
        return self.story

    def _pass_time(self, drivers: list[ModelDriver]) -> None:
        draw = self.random
        self.now_ms += draw.randint(1, 2_000)
        if draw.random() < self.trouble * 0.1:
            self.now_ms += draw.choice([HOUR_MS, 3 * HOUR_MS, 30 * HOUR_MS])
        if drivers and all(one.asleep_until_ms > self.now_ms for one in drivers):
            self.now_ms = min(one.asleep_until_ms for one in drivers)
        self._deliver_late()

    def _deliver_late(self) -> None:
        due = [one for one in self.late if one[0] <= self.now_ms]
        self.late = [one for one in self.late if one[0] > self.now_ms]
        for due_ms, request in sorted(due, key=lambda one: one[0]):
            outcome = self._append(request, due_ms)
            self.story.append(f"a late request for {request.place}: {outcome.kind}")

    def _append(self, request: Request, now_ms: int) -> SendOutcome:
        log = self.logs[request.place]
        return log.append(request.producer_id, request.sequence, request.rows, now_ms)

    def _move(self, driver: ModelDriver) -> bool:
        """Take one step of a driver; False: it has ended."""
        draw = self.random
        if driver.batch_id >= self.batches:
            return False
        if driver.steps is None:
            driver.begin()
        if draw.random() < self.trouble * 0.2:
            return self._die(driver)
        if driver.pending is not None:
            driver.result = self.carry_out(driver.pending, driver)
            driver.pending = None
            return True
        assert driver.steps is not None
        try:
            effect = driver.steps.send(driver.result)
        except StopIteration:
            self.story.append(f"driver {driver.number} has micro-batch {driver.batch_id}")
            self.committed = max(self.committed, driver.batch_id)
            driver.batch_id += 1
            driver.steps = None
            driver.unflushed = []
            return True
        except SinkRefused as refusal:
            self.story.append(f"driver {driver.number}: {refusal}")
            return False
        if draw.random() < self.trouble * 0.2:
            return self._die(driver)
        # A plan of long ago does the most harm.
        likely = 0.6 if isinstance(effect, effects.CreatePlan) else 0.1
        if draw.random() < self.trouble * likely:
            self.story.append(f"driver {driver.number} sleeps")
            driver.asleep_until_ms = self.now_ms + draw.choice([60_000, 3 * HOUR_MS, 40 * HOUR_MS])
            driver.pending = effect
            return True
        driver.result = self.carry_out(effect, driver)
        return True

    def _die(self, driver: ModelDriver) -> bool:
        self.story.append(f"driver {driver.number} dies")
        for name in driver.unflushed:
            self.plans.pop(name, None)
        return False

    # --- Effects

    def carry_out(self, effect: object, driver: ModelDriver) -> object:
        self.story.append(f"driver {driver.number} {type(effect).__name__} {driver.batch_id}")
        result = self._carried_out(effect, driver)
        self._check_open_plans(type(effect).__name__)
        return result

    def _check_open_plans(self, after: str) -> None:
        """Note plans that are open and lack a file: a second driver may still have to send it."""
        for batch_id in sorted({int(name.split(".")[0]) for name in self.plans} - self.done):
            stored = self._stored(batch_id)
            assert stored is not None
            if any(file.name not in self.files for file in stored.plan.files):
                self.bare_plans[f"micro-batch {batch_id} is open without its files: {after}"] = None

    def _carried_out(self, effect: object, driver: ModelDriver) -> object:
        match effect:
            case effects.ReadPlan():
                return self._stored(effect.batch_id)
            case effects.ReadNewest():
                ids = [decode_plan(text, name).batch_id for name, text in self.plans.items()]
                return self._stored(max(ids)) if ids else None
            case effects.FindLacking():
                return [file.name for file in effect.files if file.name not in self.files]
            case effects.CreatePlan():
                return self._create(effect.plan, driver)
            case effects.MarkDone():
                self.done.add(effect.plan.batch_id)
                # Plans that are done go in time.
                for batch_id in range(effect.plan.batch_id - 2):
                    for name in [one for one in self.plans if one.startswith(f"{batch_id}.")]:
                        del self.plans[name]
            case effects.RemoveFiles():
                for name in effect.names:
                    self.files.pop(name, None)
            case effects.Now():
                return self.now_ms
            case effects.NewProducer():
                self.next_producer += 1
                if self.next_producer > 1:
                    self.story.append("another id")
                return self.next_producer, 0
            case effects.NoteEnds():
                ends = {place: self.logs[place].end_offset for place in effect.places}
                return Noted(ends, {topic: topic for topic, _ in effect.places}, "c")
            case effects.SendRound():
                return self._send(effect)
            case effects.LookBack():
                return self._look_back(effect)
            case effects.PauseSending():
                return None
            case _:
                raise AssertionError(effect)
        return None

    def _stored(self, batch_id: int) -> StoredPlan | None:
        names = [name for name in self.plans if name.startswith(f"{batch_id}.")]
        if not names:
            return None
        name = max(names, key=lambda one: int(one.split(".")[1]))
        return StoredPlan(decode_plan(self.plans[name], name), batch_id in self.done)

    def _create(self, plan: Plan, driver: ModelDriver) -> bool:
        name = f"{plan.batch_id}.{plan.amendment}"
        if name in self.plans:
            return False
        self.plans[name] = encode_plan(plan)
        if plan.amendment:
            self.story.append(f"micro-batch {plan.batch_id} was amended")
        if not self.flushes:
            driver.unflushed.append(name)
        return True

    def _send(self, effect: effects.SendRound) -> SentRound:
        if self.now_ms > effect.not_after_ms:
            return SentRound({}, is_late=True)
        plan = effect.plan
        if any(file.name not in self.files for file in plan.files):
            return SentRound({}, are_files_gone=True)
        outcomes: dict[TopicPartition, SendOutcome] = {}
        for place, ordinal in effect.ordinals.items():
            share = plan.share_of(place)
            rows = self._rows_of(plan, share, ordinal)
            request = Request(place, share, share.sequence_of(ordinal), rows)
            outcomes[place] = self._deliver(request)
        return SentRound(outcomes)

    def _rows_of(self, plan: Plan, share: Share, ordinal: int) -> Rows:
        """Find a batch's rows: the batches of a file are counted within their partition."""
        batch = share.batches[ordinal]
        place = share.place
        whole = [rows for file in plan.files for rows in self.files[file.name].get(place, [])]
        # An amended share is the end of the first one.
        found = whole[len(whole) - len(share.batches) + ordinal]
        assert len(found) == batch.count
        return found

    def _deliver(self, request: Request) -> SendOutcome:
        draw = self.random
        if draw.random() >= self.trouble:
            return self._append(request, self.now_ms)
        unclear = SendOutcome(UNCLEAR, ConnectionLost("lost"))
        match draw.randint(0, 2):
            case 0:
                self._append(request, self.now_ms)
            case 1:
                self.late.append((self.now_ms + draw.choice([50, 5_000, LATE_MS]), request))
        return unclear

    def _look_back(self, effect: effects.LookBack) -> dict[TopicPartition, LookedBack]:
        found: dict[TopicPartition, LookedBack] = {}
        for place, offset in effect.offsets.items():
            log = self.logs[place]
            producer_id = effect.plan.share_of(place).producer_id
            before = SeenRange(offset)
            if place in effect.before:
                before = effect.before[place].seen
            batches = tuple(
                batch
                for owner, batch, _, _ in log.batches
                if owner == producer_id and batch.last_offset >= before.end_offset
            )
            seen = SeenRange(log.end_offset, batches).behind(before)
            found[place] = LookedBack(seen, 0, log.end_offset)
        return found

    # --- The auditor

    def audit(self) -> list[str]:
        """Count the rows of all micro-batches in the logs, and tell plans that lacked files."""
        found: dict[str, int] = {}
        for log in self.logs.values():
            for _, _, _, rows in log.batches:
                for row in rows:
                    found[row] = found.get(row, 0) + 1
        flaws = list(self.bare_plans)
        if self.committed != self.batches - 1:
            flaws.append(
                f"only {self.committed + 1} of {self.batches} micro-batches were committed"
            )
        for batch_id, rows in self.rows.items():
            for row in rows:
                if found.get(row, 0) != 1:
                    flaws.append(
                        f"row {row} of micro-batch {batch_id} is there {found.get(row, 0)} times"
                    )
        return flaws
