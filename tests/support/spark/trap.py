"""Traps for the driver's end of a stream: the process dies, or stops, at a step of the sink.

The steps are the product's; a trap is a data source whose writer carries them out with a signal
between two of them.  Each trap snaps once: a file says that it did.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple


class Trap(NamedTuple):
    """Trap in a micro-batch (None: the first that gets there): before or behind the `nth` effect of
    this name.  `what` is "kill" (of this Python process), "stop", "tell" (it goes on), or the id of
    a process group that is killed."""

    batch_id: int | None
    effect: str
    is_behind: bool
    nth: int = 1
    what: str | int = "kill"


def trapped_source(traps: list[Trap], folder: str) -> type[Any]:
    """Make the data source `tarry-trapped`; local classes go to other processes as they are."""
    from tarry.spark.source import TarrySource
    from tarry.spark.writing.writers import StreamWriter

    # The processes of Spark cannot import what lies in the tests.
    plain = [tuple(trap) for trap in traps]

    class TrappedWriter(StreamWriter):
        def commit(self, messages: Any, batchId: int) -> None:  # noqa: N803
            import os
            import signal
            from pathlib import Path

            from tarry.spark.writing.publishing import Publishing

            carry_out: Any = Publishing._carry_out
            counts: dict[str, int] = {}

            def snap(what: Any, flag: Path) -> None:
                flag.write_text(f"{os.getpid()}")
                if what == "tell":
                    return
                if what == "stop":
                    os.kill(os.getpid(), signal.SIGSTOP)
                    return
                if what != "kill":
                    os.killpg(what, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)

            def trapped(self: Publishing, effect: Any) -> object:
                name = type(effect).__name__
                counts[name] = counts.get(name, 0) + 1
                found = None
                for number, (batch_id, effect_name, is_behind, nth, what) in enumerate(plain):
                    flag = Path(folder) / f"trap-{number}"
                    is_here = (effect_name, nth) == (name, counts[name])
                    if is_here and batch_id in (None, batchId) and not flag.exists():
                        found = what, flag, is_behind
                if found and not found[2]:
                    snap(found[0], found[1])
                result = carry_out(self, effect)
                if found and found[2]:
                    snap(found[0], found[1])
                return result

            Publishing._carry_out = trapped  # type: ignore[method-assign]
            try:
                super().commit(messages, batchId)
            finally:
                Publishing._carry_out = carry_out  # type: ignore[method-assign]

    class TrappedSource(TarrySource):
        @classmethod
        def name(cls) -> str:
            return "tarry-trapped"

        def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802
            made = super().streamWriter(schema, overwrite)
            assert isinstance(made, StreamWriter)
            return TrappedWriter(made.options, made.columns)

    return TrappedSource


def snapped(folder: str, count: int) -> int:
    """Count the traps that snapped."""
    return sum((Path(folder) / f"trap-{number}").exists() for number in range(count))
