"""What `tarry topics` prints of outcomes and topics."""

from __future__ import annotations

import pytest

from tarry.base.errors import TOPIC_ALREADY_EXISTS
from tarry.cli.topic_description import TopicDescription, topic_json
from tarry.cli.topics import _print_outcomes
from tarry.client.core.admin_calls import TopicOutcome
from tarry.client.core.metadata import Topic
from tarry.client.errors import BrokerError

EXISTS = TopicOutcome("a", BrokerError(TOPIC_ALREADY_EXISTS, "there already"))


def test_a_topic_that_may_exist_is_left_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    _print_outcomes([EXISTS], "made", TOPIC_ALREADY_EXISTS, "exists already, left as it is")

    assert capsys.readouterr().out == "a: exists already, left as it is\n"


def test_one_refused_topic_fails_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    made = TopicOutcome("b", None, 1, 1)

    with pytest.raises(SystemExit) as ended:
        _print_outcomes([EXISTS, made], "made", None, "")

    assert ended.value.code == 1
    captured = capsys.readouterr()
    assert captured.out == "b: made (1 partition, 1 replica each)\n"
    assert captured.err.startswith("tarry: a: there already")


def test_topic_ids_are_printed_as_kafka_prints_them(capsys: pytest.CaptureFixture[str]) -> None:
    topic = Topic("orders")
    topic.topic_id = bytes.fromhex("54789193ff99479cab35039d4e7d2ecf")

    TopicDescription(topic, []).print(all_configs=False)

    assert "orders  VHiRk_-ZR5yrNQOdTn0uzw  0 partitions" in capsys.readouterr().out
    assert topic_json(topic)["topic_id"] == "VHiRk_-ZR5yrNQOdTn0uzw"
