"""Controls of a broker's faults, which every kind of access to a broker has."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tarry.testing.faults import ApiFault, CutConnection, Faults, api_key_of

Result = TypeVar("Result")


class FaultControls:
    """Controls of a broker's faults by API, which affect every client but the fixture's helpers."""

    def topic_name(self, name: str) -> str:
        """Return the name that the topic has in the broker."""
        return name

    def on_faults(self, do: Callable[[Faults], Result]) -> Result:
        """Call `do` with the faults while the broker is between two turns."""
        raise NotImplementedError

    def fail(
        self,
        api: str,
        code: int | str,
        times: int | None = 1,
        *,
        topic: str | None = None,
        place: str | None = None,
    ) -> ApiFault:
        """Refuse the next requests of an API with an error code, by its number or Kafka's name.

        A refused request is not carried out.  `times=None` goes on until `heal`.  `topic` refuses
        only this topic; `place` selects the field of the answer, such as `topics.error_code`, where
        an answer has several.
        """
        name = None if topic is None else self.topic_name(topic)
        return self._begin(
            self.on_faults(lambda faults: faults.failure(api, code, times, name, place))
        )

    def delay(self, api: str, seconds: float, times: int | None = 1) -> ApiFault:
        """Carry out the next requests of an API, and answer them `seconds` later."""
        return self._begin(self.on_faults(lambda faults: faults.slow_answer(api, seconds, times)))

    def cut(
        self, api: str | None = None, times: int | None = 1, *, is_carried_out: bool = False
    ) -> ApiFault | None:
        """End every connection now; or, with an API, those through which its next requests come:
        before they are carried out, or in place of the answer."""
        if api is None:
            self.on_faults(Faults.cut_all)
            return None
        return self._begin(CutConnection(api_key_of(api), times, is_carried_out=is_carried_out))

    def heal(self) -> None:
        """End all faults."""
        self.on_faults(Faults.clear)

    def _begin(self, fault: ApiFault) -> ApiFault:
        self.on_faults(lambda faults: faults.add(fault))
        return fault
