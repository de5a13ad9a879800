"""How many replicas the topic of groups is to have, and so how many brokers have to serve."""

from __future__ import annotations

import pytest
from tests.support.broker.group_user import group_broker

from tarry.base.settings import Settings


@pytest.mark.parametrize(
    ("given", "registered", "wanted"),
    [
        # Kafka's default is 3; a cluster of one or two brokers has groups all the same.
        (None, 1, 1),
        (None, 2, 2),
        (None, 5, 3),
        # Who says it, means it: a broker that is not there yet is waited for.
        ("3", 1, 3),
        ("1", 3, 1),
    ],
)
def test_what_is_given_is_waited_for_and_the_default_is_no_more_than_there_are(
    given: str | None, registered: int, wanted: int
) -> None:
    texts = {} if given is None else {"offsets.topic.replication.factor": given}
    groups = group_broker().broker.groups

    assert groups.factor_wanted(Settings(texts), registered) == wanted
