"""Restartable client: its process is killed and started again, pauses and loses answers.

In a quiet world no process is killed or started any more.
"""

from __future__ import annotations

from tarry.simulation.clients.simulated_client import (
    Delay,
    Query,
    QueryOutcome,
    Script,
    ScriptedClient,
    Steps,
)
from tarry.simulation.groups.context import SLICE_MS, GroupsContext
from tarry.simulation.groups.scenario import MemberPlan


class ProcessDied(Exception):
    """End of this process of the client; another process follows."""


class RestartableClient(ScriptedClient):
    """Client with one process after another: `_forget_everything` begins one, `_live` runs it."""

    def __init__(self, groups_context: GroupsContext, name: str, plan: MemberPlan) -> None:
        super().__init__(groups_context.context, name)
        self.plan = plan
        self._groups = groups_context
        self._is_dead = False
        self._life = 0

    def _forget_everything(self) -> None:
        """Forget all state: a new process starts without any."""
        raise NotImplementedError

    def _live(self) -> Script:
        """Run one process of the client to its end, a `ProcessDied`."""
        raise NotImplementedError

    def script(self) -> Script:
        context = self.context
        while not context.topics:
            yield Delay(SLICE_MS)
        while True:
            self._is_dead = False
            self._life += 1
            self._forget_everything()
            try:
                yield from self._live()
            except ProcessDied:
                self._remark("its process ends")
            if context.is_quiet:
                return
            yield from self._groups.pause(
                context.random.randrange(2 * self.plan.session_timeout_ms)
            )
            if context.is_quiet:
                return

    def _die(self) -> None:
        """End the process without a message; half of the deaths leave the connection behind."""
        if self.context.random.randrange(2) == 0:
            self.hang_up()
        raise ProcessDied

    def _is_chance(self, per_mille: int) -> bool:
        """Draw if something goes wrong; always false in the quiet phase."""
        return self.context.is_chance(per_mille) and not self.context.is_quiet

    def _ask_once(self, query: Query) -> Steps[QueryOutcome]:
        """Ask, and perhaps lose the connection or die while the answer is awaited."""
        if self.context.is_still or (self.context.is_quiet and self.plan.is_hopeless):
            raise ProcessDied
        if self._is_chance(self.plan.losses_per_mille):
            loss_ms = self.context.random.randrange(query.wait_ms // 2 + 30)
            self.context.clock.after(loss_ms, _Loss(self).happen)
        elif query.wait_ms > 0 and self._is_chance(self.plan.deaths_per_mille // 2):
            death_ms = self.context.random.randrange(query.wait_ms + 30)
            self.context.clock.after(death_ms, _Death(self).happen)
        outcome = yield query
        if self._is_dead:
            raise ProcessDied
        assert isinstance(outcome, QueryOutcome)
        return outcome

    def lose_connection(self, life: int) -> None:
        """Lose the answer to the request in flight."""
        if life == self._life and not self.context.is_quiet:
            self.hang_up()

    def die_while_waiting(self, life: int) -> None:
        """End the process while the broker keeps its request."""
        if life == self._life and self._pending and not self.context.is_quiet:
            self._is_dead = True
            self.hang_up()

    @property
    def life(self) -> int:
        """Number of the client's current process."""
        return self._life

    def _remark(self, text: str) -> None:
        """Write a remark for the reader of a replay."""
        self.context.trace.remark(self.context.clock.now_ms, f"{self.name}: {text}")


class _Loss:
    """Loss of an answer, planned in the agenda."""

    def __init__(self, client: RestartableClient) -> None:
        self._client = client
        self._life = client.life

    def happen(self) -> None:
        self._client.lose_connection(self._life)


class _Death:
    """End of a process, planned in the agenda."""

    def __init__(self, client: RestartableClient) -> None:
        self._client = client
        self._life = client.life

    def happen(self) -> None:
        self._client.die_while_waiting(self._life)
