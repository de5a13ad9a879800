"""Target: the cluster and the topics that servers lead to, and whether they are those of a plan."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from tarry.client import Topic
from tarry.client.errors import UnknownTopic
from tarry.client.sync.publisher import Publisher
from tarry.spark.writing.plan import Plan

# A broker that has just started does not know all topics yet, and any broker may be asked.
GONE_ATTEMPTS: Final = 3
GONE_SECONDS = 0.5


def known_topics(publisher: Publisher, names: Sequence[str]) -> list[Topic]:
    """Describe topics.  Raises UnknownTopic for one that stays unknown when it is asked for
    again."""
    if not names:
        return []
    for _ in range(GONE_ATTEMPTS):
        try:
            return publisher.describe_topics(names)
        except UnknownTopic:
            time.sleep(GONE_SECONDS)
    return publisher.describe_topics(names)


def other_cluster(publisher: Publisher, plan: Plan) -> str | None:
    """Return the id of the cluster if it is another one than the plan's."""
    cluster_id = publisher.describe_cluster().cluster_id
    return None if cluster_id == plan.cluster_id else cluster_id


def topic_made_anew(publisher: Publisher, plan: Plan, topics: Iterable[str]) -> str | None:
    """Return the first of these topics that is another one than the plan's.  Raises UnknownTopic
    for one that is not there."""
    for topic in known_topics(publisher, sorted(topics)):
        if topic.topic_id.hex() != plan.topic_ids.get(topic.name):
            return topic.name
    return None
