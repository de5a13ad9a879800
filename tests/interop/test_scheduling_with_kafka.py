"""Scheduled records asked of Apache Kafka, which has none."""

from __future__ import annotations

import pytest

from tarry.client import Admin, NewTopic, SchedulingUnsupported


def test_a_broker_without_scheduled_records_is_an_error_that_says_so(apache_kafka: str) -> None:
    with Admin(bootstrap_servers=apache_kafka) as admin:
        admin.create_topics([NewTopic("not-scheduled", 1)])

        with pytest.raises(SchedulingUnsupported, match=r"no setting delay\.enable"):
            admin.cancel_scheduled("not-scheduled", "a")
        with pytest.raises(SchedulingUnsupported):
            admin.scheduled("not-scheduled")

        assert admin.describe_topics(["not-scheduled"])
