"""Spelling: the known word that is most like an unknown one, for the sentence that refuses it.

Words are compared by the pairs of letters that they share.  A stranger may ask this thousands of
times with one request, so a comparison takes microseconds; one letter by letter takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Letters of a word that are compared: no key is as long.
LETTERS_MAX: Final = 100

# Lowest score of a similar word: "retention.ms" is near "log.retention.ms" (0.8) and "listner" near
# "listeners" (0.67), while "database.url" scores at most 0.25.
SCORE_NEAR: Final = 0.6

# A part between dots of at least this length must resemble a part of the known word.  A key of a
# newer Kafka differs from a known one by a whole word (assignment, heartbeat), a typing error by
# letters ("dris" shares 0.4 with "dirs").
PART_LETTERS_MIN: Final = 4
PART_SCORE_NEAR: Final = 0.3


class Spelling:
    """Fixed list of words with their pairs of letters."""

    def __init__(self, words: Iterable[str]) -> None:
        self._pairs = [(word, _pairs(word)) for word in words]

    def near(self, word: str) -> str:
        """Return the word with the highest score, the first of several; "" if none is similar."""
        wanted = _pairs(word[:LETTERS_MAX])
        best, best_score = "", SCORE_NEAR
        for known, pairs in self._pairs:
            score = _score(wanted, pairs)
            # SCORE_NEAR is enough for the first word; a later word needs a higher score than the
            # best.
            is_best = score > best_score or (not best and score >= SCORE_NEAR)
            if is_best and _is_like_by_parts(word[:LETTERS_MAX], known):
                best, best_score = known, score
        return best


def _is_like_by_parts(word: str, known: str) -> bool:
    """Return True if each longer part of the word resembles a part of the known one."""
    known_parts = [_pairs(part) for part in (*known.split("."), known)]
    return all(
        any(_score(_pairs(part), one) >= PART_SCORE_NEAR for one in known_parts)
        for part in word.split(".")
        if len(part) >= PART_LETTERS_MIN
    )


def _score(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _pairs(word: str) -> frozenset[str]:
    """Return each pair of neighbouring letters, in lower case; both ends count as letters."""
    padded = f"^{word.lower()}$"
    return frozenset(padded[at : at + 2] for at in range(len(padded) - 1))
