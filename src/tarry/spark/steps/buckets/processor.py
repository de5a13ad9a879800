"""Base of the processors of steps with state."""

from __future__ import annotations

import io
import sys
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

# Process that Spark starts on the driver, which asks a processor for its state and ends.
STATE_ASKER: Final = "pyspark.sql.streaming.transform_with_state_driver_worker"


class BucketProcessor(StatefulProcessor):
    """Processor that Spark's workers get by pickle."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        if spec is not None and spec.name == STATE_ASKER:
            # It prints what it does, with the addresses of objects, and Spark copies that to the
            # driver's stderr.  What fails in it goes to Spark another way.
            sys.stdout = io.StringIO()

    def close(self) -> None:
        """Have nothing to close."""
