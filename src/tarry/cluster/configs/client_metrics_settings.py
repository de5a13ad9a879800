"""Settings of subscriptions to client metrics, which Tarry does not collect.

Apache Kafka describes them for any name, with its defaults; here they cannot be changed.  The
notation of the table is that of `base/setting`.
"""

from __future__ import annotations

from typing import Final

from tarry.base.setting import DEFAULT_ONLY, Setting, read_table

_TABLE: Final = """
interval.ms                        int     300000
    Client metrics are not collected.
match                              list    ""
    Client metrics are not collected.
metrics                            list    ""
    Client metrics are not collected.
"""

CLIENT_METRICS_SETTINGS: Final[tuple[Setting, ...]] = tuple(read_table(_TABLE, DEFAULT_ONLY))
