"""The known word that looks most like one that is not known, for the sentence that refuses it.

By the pairs of letters that two words share.  A stranger may ask this thousands of times with one
request, so it costs microseconds, where comparing letter by letter takes milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

# Of a longer word only the beginning is looked at: no key has as many letters.
LETTERS_MAX: Final = 100

# Words that share less are strangers: "retention.ms" is near "log.retention.ms" (0.8) and "listner"
# near "listeners" (0.67), while "database.url" has nothing above 0.25.
SCORE_NEAR: Final = 0.6

# A part between dots that is as long as this must look like one of the known word's parts: a key of
# a newer Kafka differs from a known one by a whole word (assignment, heartbeat), a slip of the
# finger by letters ("dris" shares 0.4 with "dirs").
PART_LETTERS_MIN: Final = 4
PART_SCORE_NEAR: Final = 0.3


class Spelling:
    """A fixed list of words and what they are made of."""

    def __init__(self, words: Iterable[str]) -> None:
        self._pairs = [(word, _pairs(word)) for word in words]

    def near(self, word: str) -> str:
        """Return the word with most in common, of several the first; "" if none looks like this
        word.
        """
        wanted = _pairs(word[:LETTERS_MAX])
        best, best_score = "", SCORE_NEAR
        for known, pairs in self._pairs:
            score = _score(wanted, pairs)
            # The first word may be just near enough; a later one must be nearer.
            is_best = score > best_score or (not best and score >= SCORE_NEAR)
            if is_best and _is_like_by_parts(word[:LETTERS_MAX], known):
                best, best_score = known, score
        return best


def _is_like_by_parts(word: str, known: str) -> bool:
    """Return true if each longer part of the word looks like a part of the known one."""
    known_parts = [_pairs(part) for part in (*known.split("."), known)]
    return all(
        any(_score(_pairs(part), one) >= PART_SCORE_NEAR for one in known_parts)
        for part in word.split(".")
        if len(part) >= PART_LETTERS_MIN
    )


def _score(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other))


def _pairs(word: str) -> frozenset[str]:
    """Return each two letters that follow each other, in lower case; the ends count as letters."""
    padded = f"^{word.lower()}$"
    return frozenset(padded[at : at + 2] for at in range(len(padded) - 1))
