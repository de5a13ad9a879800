"""Who derives state from a log: told of what recovery and truncation kept."""

from __future__ import annotations

from mypy_extensions import mypyc_attr

from tarry.records.batch import BatchHeader


@mypyc_attr(allow_interpreted_subclasses=True)
class LogListener:
    """State derived from a log, which follows its recovery and truncation."""

    def reset(self) -> None:
        """Forget everything: what follows comes from the log."""

    def load_snapshot(self, data: bytes) -> bool:
        """Take over what `take_snapshot` gave; False if it is not usable."""
        return False

    def take_snapshot(self) -> bytes | None:
        """The state after the last written batch; None: there is nothing to keep."""
        return None

    def on_recovered_batch(self, header: BatchHeader) -> None:
        """A batch that the log kept and the snapshot did not know, in order of offsets."""
