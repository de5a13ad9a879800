"""An actor that is one process after the other: it dies without a word, pauses, loses answers.

In a quiet world nobody dies any more, and nobody who is dead comes back.
"""

from __future__ import annotations

from tarry.simulation.group_scene import MemberPlan
from tarry.simulation.workload.actor import Outcome, Pause, Question, Script, ScriptedActor, Steps
from tarry.simulation.workload.group_stage import SLICE_MS, GroupStage


class ProcessDied(Exception):
    """This process is no more; the next thing is another."""


class Mortal(ScriptedActor):
    """See the module's text.  `_forget_everything` and `_live` make a process of it."""

    def __init__(self, group_stage: GroupStage, name: str, plan: MemberPlan) -> None:
        super().__init__(group_stage.stage, name)
        self.plan = plan
        self._groups = group_stage
        self._is_dead = False
        self._life = 0

    def _forget_everything(self) -> None:
        """A new process knows nothing."""
        raise NotImplementedError

    def _live(self) -> Script:
        """One process, to its end: `ProcessDied`."""
        raise NotImplementedError

    def script(self) -> Script:
        stage = self.stage
        while not stage.topics:
            yield Pause(SLICE_MS)
        while True:
            self._is_dead = False
            self._life += 1
            self._forget_everything()
            try:
                yield from self._live()
            except ProcessDied:
                self._remark("its process ends")
            if stage.is_quiet:
                return
            yield from self._groups.pause(stage.random.randrange(2 * self.plan.session_timeout_ms))
            if stage.is_quiet:
                return

    def _die(self) -> None:
        """No word to anybody; half of those who die leave their connection behind."""
        if self.stage.random.randrange(2) == 0:
            self.hang_up()
        raise ProcessDied

    def _is_chance(self, per_mille: int) -> bool:
        """Something goes wrong, or does not: never when all is quiet."""
        return self.stage.is_chance(per_mille) and not self.stage.is_quiet

    def _ask_once(self, question: Question) -> Steps[Outcome]:
        """Ask, and perhaps lose the connection or die while the answer is awaited."""
        if self.stage.is_still or (self.stage.is_quiet and self.plan.is_hopeless):
            raise ProcessDied
        if self._is_chance(self.plan.losses_per_mille):
            loss_ms = self.stage.random.randrange(question.wait_ms // 2 + 30)
            self.stage.clock.after(loss_ms, _Loss(self).happen)
        elif question.wait_ms > 0 and self._is_chance(self.plan.deaths_per_mille // 2):
            death_ms = self.stage.random.randrange(question.wait_ms + 30)
            self.stage.clock.after(death_ms, _Death(self).happen)
        outcome = yield question
        if self._is_dead:
            raise ProcessDied
        assert isinstance(outcome, Outcome)
        return outcome

    def lose_connection(self, life: int) -> None:
        """The answer to what was asked gets lost."""
        if life == self._life and not self.stage.is_quiet:
            self.hang_up()

    def die_while_waiting(self, life: int) -> None:
        """The process ends while the broker keeps its request."""
        if life == self._life and self._pending and not self.stage.is_quiet:
            self._is_dead = True
            self.hang_up()

    @property
    def life(self) -> int:
        """Which of its processes this is."""
        return self._life

    def _remark(self, text: str) -> None:
        """For the reader of a replay."""
        self.stage.trace.remark(self.stage.clock.now_ms, f"{self.name}: {text}")


class _Loss:
    """The loss of an answer in the agenda."""

    def __init__(self, mortal: Mortal) -> None:
        self._mortal = mortal
        self._life = mortal.life

    def happen(self) -> None:
        self._mortal.lose_connection(self._life)


class _Death:
    """The end of a process in the agenda."""

    def __init__(self, mortal: Mortal) -> None:
        self._mortal = mortal
        self._life = mortal.life

    def happen(self) -> None:
        self._mortal.die_while_waiting(self._life)
