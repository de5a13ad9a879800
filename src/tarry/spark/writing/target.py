"""Target: whether a plan's cluster and topics are those that the servers lead to now."""

from __future__ import annotations

from collections.abc import Iterable

from tarry.client.sync.publisher import Publisher
from tarry.spark.writing.known_topics import known_topics
from tarry.spark.writing.plan import Plan


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
