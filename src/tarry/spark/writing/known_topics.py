"""Known topics: what the cluster says of topics, also while a broker of it has just started."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from tarry.client import Topic
from tarry.client.errors import UnknownTopic
from tarry.client.sync.publisher import Publisher

# A broker that has just started does not know all topics yet, and any broker may be asked.
GONE_ATTEMPTS: Final = 3
GONE_SECONDS = 0.5


def known_topics(publisher: Publisher, names: Sequence[str]) -> list[Topic]:
    """Describe topics.  Raises UnknownTopic for one that stays unknown when it is asked for
    again."""
    for _ in range(GONE_ATTEMPTS):
        try:
            return publisher.describe_topics(names)
        except UnknownTopic:
            time.sleep(GONE_SECONDS)
    return publisher.describe_topics(names)
