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
            score = 2 * len(wanted & pairs) / (len(wanted) + len(pairs))
            # The first word may be just near enough; a later one must be nearer.
            if score > best_score or (not best and score >= SCORE_NEAR):
                best, best_score = known, score
        return best


def _pairs(word: str) -> frozenset[str]:
    """Return each two letters that follow each other, in lower case; the ends count as letters."""
    padded = f"^{word.lower()}$"
    return frozenset(padded[at : at + 2] for at in range(len(padded) - 1))
