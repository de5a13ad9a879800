"""Decisions about settings of topics and brokers: Kafka's checks, pure.

Nothing is changed here: a decision is a record for the metadata log, or none if all stays as it
is.  A refusal is a `ConfigRefusal` with Kafka's error code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tarry.base import errors
from tarry.base.errors import InvalidSetting
from tarry.base.setting import shown, value_text
from tarry.base.settings import SETTINGS, Settings, why_not_dynamic
from tarry.cluster.config_changes import (
    DELETE,
    ConfigRefusal,
    KeyChange,
    changed_texts,
    check_form,
)
from tarry.cluster.records import EVERY_BROKER, BrokerConfigChanged, ConfigChanged, MetadataRecord
from tarry.cluster.state import ClusterState
from tarry.cluster.topic_decisions import STANDS_STILL
from tarry.cluster.topic_names import name_fault
from tarry.cluster.topic_settings import TOPIC_SETTINGS, checked_configs, default_value


def decide_change_topic(
    view: ClusterState, name: str, changes: list[KeyChange], settings: Settings, *, is_whole: bool
) -> MetadataRecord | None:
    """Change a topic's settings; `is_whole`: what is not among the changes is unset."""
    check_form(changes)
    topic = view.topic(name)
    before: Mapping[str, str] = {} if is_whole or topic is None else topic.configs
    texts = changed_texts(before, changes, TOPIC_SETTINGS, _text_behind(settings))
    _check_topic_name(name)
    # What was accepted once stays, also when it could not be had any more.
    given = {key: texts[key] for key, operation, _ in changes if operation != DELETE}
    try:
        checked = checked_configs(given, settings)
    except InvalidSetting as fault:
        raise ConfigRefusal(errors.INVALID_CONFIG, str(fault)) from fault
    if topic is None:
        raise ConfigRefusal(errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    if topic.is_still:
        raise ConfigRefusal(errors.UNKNOWN_SERVER_ERROR, STANDS_STILL)
    configs = dict(sorted({**texts, **checked}.items()))
    if configs == topic.configs:
        return None
    return ConfigChanged(topic_id=topic.topic_id, configs=configs)


def _text_behind(settings: Settings) -> Callable[[str], str]:
    """Return what a list is while a topic does not set it."""

    def text_behind(key: str) -> str:
        return value_text(default_value(key, settings)) or ""

    return text_behind


def _check_topic_name(name: str) -> None:
    if not name:
        raise ConfigRefusal(
            errors.INVALID_REQUEST, "a topic must be named; the broker's settings stand behind all"
        )
    fault = name_fault(name)
    if fault:
        raise ConfigRefusal(errors.INVALID_TOPIC_EXCEPTION, fault)


def decide_change_broker(
    view: ClusterState,
    name: str,
    changes: list[KeyChange],
    settings: Settings,
    *,
    is_whole: bool,
) -> MetadataRecord | None:
    """Change a broker's settings while it runs; the name "" means every broker."""
    check_form(changes)
    broker_id = broker_named(name, settings)
    for key, operation, _ in changes:
        fault = why_not_dynamic(key) if operation != DELETE else ""
        if fault:
            raise ConfigRefusal(errors.INVALID_REQUEST, fault)
    current = view.configs_of_broker(broker_id)
    texts = changed_texts({} if is_whole else current, changes, SETTINGS, settings.get_text)
    configs = {key: _normal_text(key, texts[key]) for key in sorted(texts)}
    if broker_id == EVERY_BROKER:
        cluster, own = configs, view.configs_of_broker(settings.node_id)
    else:
        cluster, own = view.configs_of_broker(EVERY_BROKER), configs
    try:
        settings.overlaid(cluster, own)
    except InvalidSetting as found:
        raise ConfigRefusal(errors.INVALID_REQUEST, str(found)) from found
    if configs == current:
        return None
    return BrokerConfigChanged(broker_id=broker_id, configs=configs)


def broker_named(name: str, settings: Settings) -> int:
    """Return the broker that a resource of this name is, or `EVERY_BROKER`."""
    if not name:
        return EVERY_BROKER
    digits = name.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
    # One way to write it, so that no request names a broker twice unseen.
    if not is_number or str(int(name)) != name:
        raise ConfigRefusal(
            errors.INVALID_REQUEST, f"a broker's id is a number, not '{shown(name)}'"
        )
    if int(name) != settings.node_id:
        raise ConfigRefusal(
            errors.INVALID_REQUEST,
            f"broker {settings.node_id} knows its own settings, not those of broker {int(name)}",
        )
    return settings.node_id


def _normal_text(key: str, text: str) -> str:
    """Return the text as Kafka writes the value, where it is one."""
    try:
        return value_text(SETTINGS[key].parse(text)) or ""
    except InvalidSetting:
        return text
