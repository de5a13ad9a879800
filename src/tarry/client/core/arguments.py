"""Arguments of consumers and admin clients, checked before anything has changed.

A wrong argument raises TypeError or ValueError with its name, its value and the right form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tarry.base.ids import TopicPartition
from tarry.client.core.outgoing import PARTITION_MAX, check_timestamp, check_topic
from tarry.client.errors import NotSubscribed
from tarry.client.settings import SettingValue

OFFSET_MAX: Final = 2**63 - 1

# A year.  A longer time-out is meant to be none, but every wait has a limit.
TIMEOUT_S_MAX: Final = 366 * 24 * 3600


def timeout_ms_of(timeout: object, default_ms: int) -> int:
    """Return a user's time-out, given in seconds, in milliseconds; the default for None."""
    if timeout is None:
        return default_ms
    if not isinstance(timeout, int | float) or isinstance(timeout, bool):
        raise TypeError(f"timeout={timeout!r:.60} is no number: give seconds, such as 2.5")
    if not 0 <= timeout <= TIMEOUT_S_MAX:
        raise ValueError(
            f"timeout={timeout!r:.60} is not between 0 and {TIMEOUT_S_MAX} seconds, and every wait "
            "has a limit"
        )
    return int(timeout * 1000)


def records_max_of(records_max: object, default: int) -> int:
    """Return the largest number of records that a poll may return; the default for None."""
    if records_max is None:
        return default
    if type(records_max) is not int:
        raise TypeError(f"max_records={records_max!r:.60} is no whole number: give an int")
    if records_max < 1:
        raise ValueError(f"max_records={records_max} is less than 1: leave it out, or give more")
    return records_max


def check_listener(listener: object, kind: type) -> None:
    """Raise TypeError for a listener of another class; None stands for no listener."""
    if listener is not None and not isinstance(listener, kind):
        # Each face has a class of this name.
        name = f"tarry.client.{'aio.' if '.aio.' in kind.__module__ else ''}{kind.__name__}"
        raise TypeError(
            f"listener={listener!r:.60} is no {name}: make a subclass of it with on_assigned, "
            "on_revoked or on_lost"
        )


def places_of(what: str, places: object) -> list[TopicPartition]:
    """Return the partitions without repetitions, in their order."""
    if isinstance(places, (str, bytes)) or not isinstance(places, Iterable):
        raise TypeError(f'{what} takes partitions such as [("orders", 0)], not {places!r:.60}')
    if isinstance(places, tuple) and len(places) == 2 and isinstance(places[0], str):
        raise TypeError(
            f"{what} takes several partitions: put the one into a list, [{places!r:.60}]"
        )
    return list(dict.fromkeys(place_of(what, one) for one in places))


def place_of(what: str, place: object) -> TopicPartition:
    if not isinstance(place, tuple) or len(place) != 2:
        raise TypeError(f'{what} takes partitions such as ("orders", 0), not {place!r:.60}')
    topic, partition = place
    if not isinstance(topic, str) or type(partition) is not int:
        raise TypeError(
            f"{what} takes a topic's name and a partition's number, such as "
            f'("orders", 0), not {place!r:.60}'
        )
    check_topic(topic)
    if not 0 <= partition <= PARTITION_MAX:
        raise ValueError(
            f"{what}: there is no partition {partition}; they are numbered from 0 on, to "
            f"{PARTITION_MAX} at most"
        )
    return topic, partition


def place_given(what: str, place: object, older: Sequence[object]) -> TopicPartition:
    """Return a partition, given as ("orders", 0) or in the older form as two arguments."""
    return place_of(what, (place, *older) if older or isinstance(place, str) else place)


def check_offset(what: str, offset: object) -> None:
    if type(offset) is not int:
        raise TypeError(f"{what} takes an offset as an int, not {offset!r:.60}")
    if not 0 <= offset <= OFFSET_MAX:
        ends = "; for the ends of a partition there are seek_to_beginning and seek_to_end"
        hint = ends if what == "seek" else ""
        raise ValueError(f"{what}: {offset} is no offset, the first one is 0{hint}")


def epochs_of(what: str, epochs: object) -> dict[TopicPartition, int]:
    """Return leader epochs by partition."""
    if not isinstance(epochs, Mapping):
        raise TypeError(f'{what} takes epochs such as {{("orders", 0): 3}}, not {epochs!r:.60}')
    for epoch in epochs.values():
        if type(epoch) is not int:
            raise TypeError(f"{what} takes a leader epoch as an int, not {epoch!r:.60}")
        if not 0 <= epoch < 2**31:
            raise ValueError(f"{what}: {epoch} is no leader epoch, the first one is 0")
    return {place_of(what, place): epoch for place, epoch in epochs.items()}


def times_of(what: str, times: object) -> dict[TopicPartition, int]:
    """Return timestamps by partition."""
    if not isinstance(times, Mapping):
        raise TypeError(f'{what} takes times such as {{("orders", 0): 0}}, not {times!r:.60}')
    for timestamp in times.values():
        check_timestamp(timestamp)
    places_of(what, times)
    return dict(times)


def names_of(what: str, names: object) -> list[str]:
    """Return names in their order; refuse a single str, most likely meant as a list of one name."""
    if isinstance(names, (str, bytes)) or not isinstance(names, Iterable):
        raise TypeError(f'{what} takes several names, such as ["orders"], not {names!r:.60}')
    found = list(names)
    for name in found:
        if not isinstance(name, str):
            raise TypeError(f"{what} takes names as str, not {name!r:.60}")
    return found


def topics_of(what: str, topics: object) -> list[str] | re.Pattern[str]:
    """Return the names of topics, or the pattern that matches them."""
    if isinstance(topics, re.Pattern):
        if not isinstance(topics.pattern, str):
            raise TypeError(f'{what} takes a pattern of text, such as re.compile("orders-.*")')
        return topics
    names = [topics] if isinstance(topics, str) else names_of(what, topics)
    for name in names:
        check_topic(name)
    return names


def consumer_arguments(
    given: Iterable[object],
) -> tuple[dict[str, SettingValue], list[str] | re.Pattern[str]]:
    """Return settings and subscription from the positional arguments of a consumer."""
    settings: dict[str, SettingValue] = {}
    names: list[str] = []
    patterns: list[re.Pattern[str]] = []
    for one in given:
        if isinstance(one, Mapping):
            settings.update(one)
        elif isinstance(one, str) and ":" in one:
            raise ValueError(
                f"Consumer takes names of topics, and {one!r:.60} looks like an address: give "
                f"bootstrap_servers={one!r:.60}"
            )
        elif isinstance(one, str):
            names.append(one)
        elif isinstance(one, re.Pattern):
            patterns.append(one)
        elif one is not None:
            raise TypeError(
                'Consumer takes names of topics, such as Consumer("orders", group_id="billing"), '
                f"or one compiled pattern, not {one!r:.60}"
            )
    if len(patterns) + bool(names) > 1:
        raise NotSubscribed("subscribe to names or to one pattern, not to both")
    return settings, patterns[0] if patterns else names


def check_settings(what: str, settings: object) -> None:
    """Raise TypeError for settings that are neither a mapping nor None, such as an address."""
    if settings is None or isinstance(settings, Mapping):
        return
    raise TypeError(
        f"{what} takes settings as a mapping or by name, such as "
        f'{what}(bootstrap_servers="localhost:9092"), not {settings!r:.60}'
    )
