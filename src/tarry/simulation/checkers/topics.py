"""Checkers of topics: a created topic is there under its id until it is deleted."""

from __future__ import annotations

from tarry.simulation.clients.history import MetadataSeen, RunHistory, TopicChangeSeen, is_before


def check_topics(history: RunHistory) -> list[str]:
    """Check that an acknowledged creation or deletion holds in each later answer (A29)."""
    for seen in history.metadata:
        there = {topic.topic_id: topic.name for topic in seen.topics}
        for change in history.topic_changes:
            if change.exchange is None or not is_before(change.exchange, seen.exchange):
                continue
            if change.is_creation:
                sentence = _missing(history, seen, there, change)
                if sentence:
                    return [sentence]
            elif change.topic_id in there:
                return [f"topic {change.name} was deleted and is still in the metadata"]
    return []


def _missing(
    history: RunHistory, seen: MetadataSeen, there: dict[bytes, str], change: TopicChangeSeen
) -> str:
    for other in history.topic_changes:
        if (
            not other.is_creation
            and other.topic_id == change.topic_id
            and other.sent_turn <= seen.exchange.answered_turn
        ):
            return ""
    name = there.get(change.topic_id)
    if name is None:
        return f"topic {change.name} was created and is not in the metadata under its id"
    if name != change.name:
        return f"the id of topic {change.name} is that of topic {name}"
    return ""
