"""Target: the cluster and the topics that servers lead to, and whether they are those of a plan."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Final

from tarry.client import Topic
from tarry.client.errors import UnknownTopic
from tarry.client.sync.publisher import Publisher
from tarry.spark.writing.plan import Plan, SinkInterrupted, is_same_topic

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


def topic_to_write(publisher: Publisher, name: str) -> Topic:
    """Describe the topic of a task's rows.  Raises SinkInterrupted if it is not there."""
    try:
        return known_topics(publisher, [name])[0]
    except UnknownTopic as error:
        raise SinkInterrupted(
            f"topic {name!r} does not exist: make it before the query is started, such as with "
            f"`tarry topics create {name}`"
        ) from error


def other_cluster(publisher: Publisher, plan: Plan) -> str | None:
    """Return the id of the cluster if it is another one than the plan's."""
    cluster_id = publisher.describe_cluster().cluster_id
    return None if cluster_id == plan.cluster_id else cluster_id


def topics_made_anew(publisher: Publisher, plan: Plan, topics: Iterable[str]) -> list[str]:
    """Return which of these topics are other ones than the plan's.  Raises UnknownTopic for one
    that is not there."""
    described = known_topics(publisher, sorted(topics))
    return [
        topic.name
        for topic in described
        if not is_same_topic(plan.topic_ids.get(topic.name), topic.topic_id.hex())
    ]
