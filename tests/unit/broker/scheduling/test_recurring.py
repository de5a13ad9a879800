"""Records that come again and again, by a cron expression in their headers."""

from __future__ import annotations

from tests.unit.broker.scheduling.test_headers import Scheduler

from tarry.records.builder import Headers
from tarry.simulation.by_hand import START_WALL_MS

MINUTE_MS = 60_000
# The first full minute after the start.
FIRST_MS = START_WALL_MS // MINUTE_MS * MINUTE_MS + MINUTE_MS


def cron(text: str = "* * * * *", **terms: str | int) -> Headers:
    """Headers of a recurring record; `terms` are those beside the expression."""
    headers: Headers = [("x-sched-cron", text.encode())]
    return [*headers, *((f"x-sched-{name}", str(value).encode()) for name, value in terms.items())]


class Recurrer(Scheduler):
    """A user of the topic `orders`, some of whose records recur."""

    def at(self, ms: int) -> None:
        """Let it be so long after the first full minute, by both clocks."""
        self.pass_time(FIRST_MS + ms - self.hand.now_wall_ms)

    def due_minutes(self) -> list[float]:
        """Times of all records that a consumer finds, in minutes after the first full one."""
        return [(record.timestamp - FIRST_MS) / MINUTE_MS for record in self.records()]


def test_a_recurring_record_comes_at_each_of_its_times():
    user = Recurrer()

    offset = user.schedule((b"a", cron()))
    seen = []
    for ms in (-1, 0, MINUTE_MS - 1, MINUTE_MS, 2 * MINUTE_MS):
        user.at(ms)
        seen.append(user.due_minutes())

    assert offset == -1
    assert seen == [[], [0], [0], [0, 1], [0, 1, 2]]


def test_it_goes_on_over_a_crash():
    user = Recurrer()
    user.schedule((b"a", cron()))
    user.at(0)

    user.crash()
    user.at(1)
    after_crash = user.due_minutes()
    user.at(MINUTE_MS)

    assert (after_crash, user.due_minutes()) == ([0], [0, 1])
