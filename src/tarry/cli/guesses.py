"""Guesses: the name that was probably meant, for the sentence about one that is not there."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the name that looks most like the word, or "" if none does."""
    # Import it here: hardly any call needs it.
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(word, names, 1) or [
        name for name in names if name.lower() == word.lower()
    ]
    return near[0] if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'orders'?`, or nothing if no name is near."""
    near = nearest(word, known)
    return f"; did you mean {near!r}?" if near else ""


def unknown_topic(name: str, known: Iterable[str]) -> str:
    """Make the sentence about a topic that is not there."""
    return f"topic {name!r} does not exist{did_you_mean(name, known)}"


def unknown_group(name: str, known: Iterable[str]) -> str:
    """Make the sentence about a group that is not there."""
    return f"group {name!r} does not exist{did_you_mean(name, known)}"
