"""Names that a request repeats: each is answered once, at its first place.

A repeated name costs its client a few bytes, and its answer may cost the broker a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable
from typing import Final, TypeVar

K = TypeVar("K", bound=Hashable)
P = TypeVar("P")
Index = TypeVar("Index", bound=Hashable)

# Looking an element up takes so small a part of the unit of work in which long answers count.
ELEMENTS_PER_UNIT: Final = 20
ELEMENTS_PER_STEP: Final = 2_000


def once(names: Iterable[K]) -> list[K]:
    """Return the names without repetitions."""
    return list(dict.fromkeys(names))


def once_by(elements: Iterable[P], key_of: Callable[[P], Hashable]) -> list[P]:
    """Return the elements without those whose key has come before."""
    first: dict[Hashable, P] = {}
    for each in elements:
        first.setdefault(key_of(each), each)
    return list(first.values())


def once_each(
    topics: Iterable[tuple[K, list[P]]],
    index_of: Callable[[P], Index],
    *,
    is_last_meant: bool = False,
) -> Generator[int, None, dict[K, dict[Index, P]]]:
    """Return the partitions by topic, each once, as steps of a long answer.

    If a request names a partition twice, its first or, if `is_last_meant`, its last row counts.
    """
    asked: dict[K, dict[Index, P]] = {}
    for name, partitions in topics:
        rows = asked.setdefault(name, {})
        for start in range(0, max(len(partitions), 1), ELEMENTS_PER_STEP):
            share = partitions[start : start + ELEMENTS_PER_STEP]
            for each in share:
                index = index_of(each)
                if is_last_meant or index not in rows:
                    rows[index] = each
            yield 1 + len(share) // ELEMENTS_PER_UNIT
    return asked
