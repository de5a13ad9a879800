"""Settings that are read again while the broker runs."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.admin_user import BROKER, LOGGER, Operator
from tests.support.broker.broker_user import ORDERS

from tarry.base.settings import Settings
from tarry.broker.settings_reread import take_over
from tarry.simulation.by_hand import BrokerByHand


@pytest.fixture
def hand() -> BrokerByHand:
    return BrokerByHand({"log.segment.bytes": "2000000", "num.partitions": "1"})


def test_logs_follow_settings_that_are_read_again(hand: BrokerByHand) -> None:
    Operator(hand).create(ORDERS)

    take_over(hand.broker, Settings({"log.segment.bytes": "3000000"}))

    assert hand.broker.topics[ORDERS].partitions[0].log.config.segment_bytes == 3_000_000


def test_a_key_that_is_given_no_more_has_its_default_again(hand: BrokerByHand) -> None:
    take_over(hand.broker, Settings({}))

    assert hand.broker.settings.log_segment_bytes == Settings().log_segment_bytes


def test_what_cannot_change_while_running_stays_and_is_told(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    take_over(hand.broker, Settings({"log.segment.bytes": "2000000", "num.partitions": "9"}))

    assert hand.broker.settings.num_partitions == 1
    assert caplog.messages == ["settings that count only after a restart: num.partitions"]


def test_what_a_client_has_changed_lies_over_what_is_read_again(hand: BrokerByHand) -> None:
    Operator(hand).set(BROKER, "", log_segment_bytes="4000000")

    take_over(hand.broker, Settings({"log.segment.bytes": "3000000"}))

    assert hand.broker.settings.log_segment_bytes == 4_000_000


def test_a_level_that_a_client_has_set_stays_unless_the_level_is_given_otherwise(
    hand: BrokerByHand,
) -> None:
    levels = hand.broker.levels
    Operator(hand).set(LOGGER, str(hand.broker.broker_id), root="WARN")
    take_over(hand.broker, Settings({"num.partitions": "1", "log.segment.bytes": "3000000"}))
    kept = levels.level("")
    take_over(hand.broker, Settings({"num.partitions": "1", "logging.level": "debug"}))
    changed = levels.level("")

    assert (kept, changed) == (logging.WARNING, logging.DEBUG)
