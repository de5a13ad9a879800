"""Settings of scheduled records: what must fit together, at creation and at a change."""

from __future__ import annotations

import random

import pytest

from tarry.base import errors
from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.cluster.configs.config_changes import DELETE, SET, ConfigRefusal, KeyChange
from tarry.cluster.configs.config_decisions import decide_change_topic
from tarry.cluster.configs.delay_settings import check_delay
from tarry.cluster.decisions.topic_decisions import TopicIds, TopicWanted, decide_create_topics
from tarry.cluster.state.records import BrokerRegistered, ConfigChanged
from tarry.cluster.state.state import ClusterState

ON = {"delay.enable": "true"}
BY_TIMESTAMP = {**ON, "delay.source": "timestamp"}
BY_DEFAULT = {**ON, "delay.default.ms": "5000"}


def topic_with(configs: dict[str, str]) -> ClusterState:
    state = ClusterState()
    state.apply(BrokerRegistered(broker_id=1))
    wanted = TopicWanted("orders", configs=list(configs.items()))
    decision = decide_create_topics(state, [wanted], Settings(), TopicIds(random.Random(1)))
    assert decision.outcomes[0].error_code == errors.NONE, decision.outcomes[0].message
    for record in decision.records:
        state.apply(record)
    return state


def change(state: ClusterState, *changes: KeyChange, is_whole: bool = False) -> dict[str, str]:
    record = decide_change_topic(state, "orders", list(changes), Settings(), is_whole=is_whole)
    assert isinstance(record, ConfigChanged)
    return dict(record.configs)


@pytest.mark.parametrize(
    "configs",
    [
        BY_TIMESTAMP,
        BY_DEFAULT,
        {**BY_DEFAULT, "message.timestamp.type": "LogAppendTime"},
        {**ON, "delay.source": "header"},
        {**ON, "delay.source": "header", "message.timestamp.type": "LogAppendTime"},
        {**BY_DEFAULT, "delay.default.ms": "0"},
        {**BY_TIMESTAMP, "delay.min.ms": "5", "delay.max.ms": "5"},
        # Without delay.enable they mean nothing yet.
        {"delay.source": "timestamp", "message.timestamp.type": "LogAppendTime"},
        {"delay.source": "timestamp", "delay.default.ms": "7"},
    ],
)
def test_settings_that_fit_together_are_taken(configs: dict[str, str]) -> None:
    check_delay({}, configs, Settings())


@pytest.mark.parametrize(
    ("configs", "sentence"),
    [
        (ON, "delay.source or delay.default.ms must say when records are due"),
        ({**BY_DEFAULT, "delay.source": "timestamp"}, "both say when records are due"),
        (
            {**BY_TIMESTAMP, "message.timestamp.type": "LogAppendTime"},
            "message.timestamp.type is LogAppendTime",
        ),
        ({**BY_TIMESTAMP, "cleanup.policy": "compact"}, "cannot be scheduled yet"),
        ({**BY_TIMESTAMP, "cleanup.policy": "compact,delete"}, "cannot be scheduled yet"),
        ({**BY_DEFAULT, "delay.max.ms": "4999"}, "is 5000 and delay.max.ms is 4999"),
        ({**BY_TIMESTAMP, "delay.min.ms": "6", "delay.max.ms": "5"}, "delay.min.ms is 6"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(
    configs: dict[str, str], sentence: str
) -> None:
    with pytest.raises(InvalidSetting, match=r"delay\.enable=true cannot") as refusal:
        check_delay({}, configs, Settings())

    assert sentence in str(refusal.value)


def test_the_brokers_settings_behind_the_topics_count() -> None:
    behind = Settings({"log.message.timestamp.type": "LogAppendTime"})

    with pytest.raises(InvalidSetting, match="LogAppendTime"):
        check_delay({}, BY_TIMESTAMP, behind)


def test_a_topic_that_cannot_delay_is_not_created() -> None:
    state = ClusterState()
    state.apply(BrokerRegistered(broker_id=1))
    wanted = TopicWanted("orders", configs=list(ON.items()))

    decision = decide_create_topics(state, [wanted], Settings(), TopicIds(random.Random(1)))

    assert decision.records == []
    assert decision.outcomes[0].error_code == errors.INVALID_CONFIG
    assert "must say when" in (decision.outcomes[0].message or "")


def test_delays_are_turned_on_and_off_while_the_broker_runs() -> None:
    state = topic_with({})

    on = change(state, *((key, SET, value) for key, value in BY_TIMESTAMP.items()))
    off = change(topic_with(BY_TIMESTAMP), ("delay.enable", SET, "false"))

    assert on == BY_TIMESTAMP
    assert off == {**BY_TIMESTAMP, "delay.enable": "false"}


@pytest.mark.parametrize("is_whole", [False, True])
def test_a_delay_that_is_unset_is_kept_as_false_for_the_records_that_wait_yet(
    is_whole: bool,
) -> None:
    changes: list[KeyChange] = [] if is_whole else [("delay.enable", DELETE, None)]

    configs = change(topic_with(BY_TIMESTAMP), *changes, is_whole=is_whole)

    assert configs["delay.enable"] == "false"


@pytest.mark.parametrize(
    "changes",
    [
        [("delay.source", DELETE, None)],
        [("delay.default.ms", SET, "3")],
        [("message.timestamp.type", SET, "LogAppendTime")],
        [("cleanup.policy", SET, "compact")],
    ],
)
def test_a_change_that_takes_away_what_a_delay_needs_is_refused(changes: list[KeyChange]) -> None:
    state = topic_with(BY_TIMESTAMP)

    with pytest.raises(ConfigRefusal, match=r"delay\.enable=true cannot") as refusal:
        change(state, *changes)

    assert refusal.value.error_code == errors.INVALID_CONFIG


def test_the_older_request_that_replaces_all_settings_is_asked_too() -> None:
    state = topic_with(BY_TIMESTAMP)

    with pytest.raises(ConfigRefusal, match="must say when records are due"):
        change(state, ("delay.enable", SET, "true"), is_whole=True)


def test_a_change_of_something_else_is_not_asked() -> None:
    check_delay(ON, {**ON, "retention.ms": "5"}, Settings())
