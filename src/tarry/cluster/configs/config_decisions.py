"""Decisions about settings of topics, brokers and groups: Kafka's checks, pure.

Nothing is changed here: a decision is a record for the metadata store, or None if nothing changes.
A refusal is a `ConfigRefusal` with Kafka's error code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from tarry.base import errors
from tarry.base.errors import InvalidSetting
from tarry.base.limits import GROUP_SETTINGS_BYTES_MAX, GROUPS_WITH_SETTINGS_MAX
from tarry.base.setting import shown, value_text
from tarry.base.settings import DESCRIBED_SETTINGS, Settings, why_not_dynamic
from tarry.cluster.configs.config_changes import (
    DELETE,
    ConfigRefusal,
    KeyChange,
    changed_texts,
    check_form,
)
from tarry.cluster.configs.delay_settings import check_delay
from tarry.cluster.configs.group_settings import checked_group_configs
from tarry.cluster.configs.topic_settings import TOPIC_SETTINGS, checked_configs, default_value
from tarry.cluster.decisions.topic_decisions import STANDS_STILL
from tarry.cluster.state.levels import may_delay
from tarry.cluster.state.records import (
    EVERY_BROKER,
    BrokerConfigChanged,
    ConfigChanged,
    GroupConfigChanged,
    MetadataRecord,
)
from tarry.cluster.state.scheduled_topics import why_not_changed
from tarry.cluster.state.state import ClusterState
from tarry.cluster.state.topic_names import name_fault


def decide_change_topic(
    view: ClusterState, name: str, changes: list[KeyChange], settings: Settings, *, is_whole: bool
) -> MetadataRecord | None:
    """Change a topic's settings; `is_whole` if keys without a change are unset."""
    check_form(changes)
    topic = view.topic(name)
    before: Mapping[str, str] = {} if is_whole or topic is None else topic.configs
    texts = changed_texts(before, changes, TOPIC_SETTINGS, _text_behind(settings))
    _check_topic_name(view, name)
    configs = _accepted(texts, changes, lambda given: checked_configs(given, settings))
    try:
        check_delay({} if topic is None else topic.configs, configs, settings)
    except InvalidSetting as fault:
        raise ConfigRefusal(errors.INVALID_CONFIG, str(fault)) from fault
    if topic is None:
        raise ConfigRefusal(errors.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic '{name}'")
    if topic.is_frozen:
        raise ConfigRefusal(errors.UNKNOWN_SERVER_ERROR, STANDS_STILL)
    if may_delay(topic.configs) and not may_delay(configs):
        # An unset `delay.enable` means false.  The stored "false" tells a new replica that records
        # may still wait.
        configs["delay.enable"] = "false"
    if configs == topic.configs:
        return None
    return ConfigChanged(topic_id=topic.topic_id, configs=configs)


def _accepted(
    texts: Mapping[str, str],
    changes: list[KeyChange],
    check: Callable[[Mapping[str, str]], dict[str, str]],
) -> dict[str, str]:
    """Return the settings as they are kept, once `check` has taken those that the changes give.

    A setting that was accepted earlier stays, even if it would be refused today.
    """
    given = {key: texts[key] for key, operation, _ in changes if operation != DELETE}
    try:
        checked = check(given)
    except InvalidSetting as fault:
        raise ConfigRefusal(errors.INVALID_CONFIG, str(fault)) from fault
    return dict(sorted({**texts, **checked}.items()))


def _text_behind(settings: Settings) -> Callable[[str], str]:
    """Return a function that returns the text of a list which a topic does not set."""

    def text_behind(key: str) -> str:
        return value_text(default_value(key, settings)) or ""

    return text_behind


def _check_topic_name(view: ClusterState, name: str) -> None:
    if not name:
        raise ConfigRefusal(
            errors.INVALID_REQUEST, "a topic must be named; the broker's settings stand behind all"
        )
    fault = name_fault(name)
    fault = fault or why_not_changed(view, name)
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
    texts = changed_texts(
        {} if is_whole else current, changes, DESCRIBED_SETTINGS, settings.get_text
    )
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


def decide_change_group(
    view: ClusterState,
    name: str,
    changes: list[KeyChange],
    *,
    is_whole: bool,
) -> MetadataRecord | None:
    """Change the settings of a group, whether a group of this name exists or not."""
    check_form(changes)
    if not name:
        raise ConfigRefusal(errors.INVALID_REQUEST, "a group must be named")
    current = view.group_configs.get(name, {})
    # Kafka has no list among a group's settings that a change could append to.
    texts = changed_texts({} if is_whole else current, changes, {}, lambda _: "")
    configs = _accepted(texts, changes, checked_group_configs)
    if configs == current:
        return None
    if not current and len(view.group_configs) >= GROUPS_WITH_SETTINGS_MAX:
        raise ConfigRefusal(
            errors.POLICY_VIOLATION,
            f"{GROUPS_WITH_SETTINGS_MAX} groups have settings of their own; unset those of others",
        )
    size = _size(name, configs)
    # Larger settings that an earlier release has accepted may shrink in steps.
    if configs and size > max(GROUP_SETTINGS_BYTES_MAX, _size(name, current)):
        raise ConfigRefusal(
            errors.POLICY_VIOLATION,
            f"the id of the group and its settings have {size} bytes together, "
            f"{GROUP_SETTINGS_BYTES_MAX} are the most",
        )
    return GroupConfigChanged(group_id=name, configs=configs)


def _size(name: str, configs: dict[str, str]) -> int:
    """Return the number of bytes that a group's settings take in the store."""
    return len(name.encode()) + len(msgspec.json.encode(configs))


def broker_named(name: str, settings: Settings) -> int:
    """Return the id of the broker that a resource names, or `EVERY_BROKER`."""
    if not name:
        return EVERY_BROKER
    digits = name.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= 10
    # Only one spelling of an id is accepted, so that no request names a broker twice unnoticed.
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
    """Return the text as Kafka writes the value; the text itself if it is no valid value."""
    try:
        return value_text(DESCRIBED_SETTINGS[key].parse(text)) or ""
    except InvalidSetting:
        return text
