"""Topics that a command is about: by names, patterns, or all of them.

A text with one of `*?[` is a pattern of a shell (`orders-*`), one that begins with `^` a regular
expression (`^orders-[0-9]+$`); neither can be the name of a topic.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.guesses import unknown_topic
from tarry.cli.running import fail

if TYPE_CHECKING:
    from tarry.client import Admin, ClientError, Topic

# Prefix of topics that no list has: the broker describes them only if they are named.
_UNLISTED: Final = "__scheduled."


def is_pattern(text: str) -> bool:
    return text.startswith("^") or any(letter in text for letter in "*?[")


def matcher(text: str) -> Callable[[str], bool]:
    """Tells whether a topic's name is meant by this name or pattern."""
    if not is_pattern(text):
        return lambda name: name == text
    compiled = regex_of([text])
    return lambda name: compiled.search(name) is not None


def regex_of(texts: Sequence[str]) -> re.Pattern[str]:
    """Make one regular expression that finds all names that these names and patterns mean."""
    parts: list[str] = []
    for text in texts:
        part = text
        if not is_pattern(text):
            part = rf"\A{re.escape(text)}\Z"
        elif not text.startswith("^"):
            # Add the anchor of the begin; the translated pattern has that of the end already.
            part = rf"\A{fnmatch.translate(text)}"
        try:
            re.compile(part)
        except re.error as error:
            raise click.UsageError(f"invalid pattern {text!r}: {error}") from None
        parts.append(f"(?:{part})")
    return re.compile("|".join(parts))


def check_patterns(texts: Iterable[str]) -> None:
    """Refuse an invalid pattern before the command connects to a broker."""
    for text in texts:
        matcher(text)


def known_topics(admin: Admin, texts: Iterable[str], timeout: float) -> list[Topic]:
    """Return all topics, and those of the texts that no list names: they show what waits."""
    topics = admin.list_topics(timeout)
    listed = {one.name for one in topics}
    names = [text for text in texts if text.startswith(_UNLISTED) and not is_pattern(text)]
    unlisted = [name for name in names if name not in listed]
    return [*topics, *admin.find_topics(unlisted, timeout).values()] if unlisted else topics


def chosen_topics(
    topics: Sequence[Topic], texts: Sequence[str], *, internal: bool
) -> tuple[list[Topic], list[str]]:
    """Return the topics that were asked for, each once, in the order of the texts, and a sentence
    for each text that is about none.  Without texts: all.  The broker's own topics are found by
    their names, or when `internal` says so.
    """
    shown = [one for one in topics if internal or not one.is_internal]
    if not texts:
        return shown, []
    found: dict[str, Topic] = {}
    missing: list[str] = []
    for text in texts:
        is_meant = matcher(text)
        among = shown if is_pattern(text) else topics
        ones = [one for one in among if is_meant(one.name)]
        found.update((one.name, one) for one in ones)
        if not ones and is_pattern(text):
            missing.append(f"no topic matches {text!r}")
        elif not ones:
            missing.append(unknown_topic(text, [one.name for one in topics]))
    return list(found.values()), missing


def check_not_internal(topics: Iterable[Topic], what: str, *, internal: bool) -> None:
    """Refuse to destroy what the broker itself keeps, unless --internal says that it is meant."""
    for topic in topics:
        if topic.is_internal and not internal:
            kept = "the committed offsets of all groups" if "offsets" in topic.name else "state"
            fail(
                f"topic {topic.name!r} belongs to the broker and holds {kept}; add --internal to "
                f"{what} all the same"
            )


def guard_internal(
    admin: Admin, names: Sequence[str], what: str, timeout: float, *, internal: bool
) -> None:
    """Choose topics by names; those that are not there are left to the request itself."""
    if not internal and any(name.startswith("_") for name in names):
        topics = admin.find_topics(names, timeout)
        check_not_internal(topics.values(), what, internal=internal)


def explained(admin: Admin, error: ClientError, name: str, timeout: float) -> ClientError:
    """Explain the error of a request about a topic; one that is not there gets the name that was
    probably meant.
    """
    from tarry.base.errors import UNKNOWN_TOPIC_OR_PARTITION
    from tarry.client.errors import BrokerError, UnknownTopic

    code = error.code if isinstance(error, BrokerError) else 0
    if code != UNKNOWN_TOPIC_OR_PARTITION and not isinstance(error, UnknownTopic):
        return error
    names = [one.name for one in admin.list_topics(timeout)]
    return error if name in names else UnknownTopic(unknown_topic(name, names))


internal_option = click.option(
    "--internal", is_flag=True, help="Allow changes of the broker's own topics."
)
