"""Search of the model of scheduled records, by hand: many seeds, or each planted fault.

search.py [--seeds N] [--from K]         the protocol as designed
search.py --faults [--seeds N] [NAME ..] each planted fault, until it is found
search.py --seed K [--unclean] [NAME]    one run, told step by step
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from tests.support.schedule.model import ScheduleModel, first_violation, steps_of
from tests.support.schedule.parts import FAULTS, Violation


def search_fault(name: str, seeds: int) -> str:
    """Return which seed finds a planted fault, without unclean elections if one does."""
    for unclean in (False, True):
        found = first_violation(range(seeds), name, unclean)
        if found is not None:
            return f"{name} {'unclean' if unclean else 'clean'} {found[0]} {found[1]}"
    return f"{name} -1"


def search_designed(seeds: range) -> Iterator[str]:
    """Yield what many seeds of the protocol as designed have found, and what has happened."""
    for unclean in (False, True):
        seen: dict[str, int] = {}
        found = first_violation(seeds, "", unclean, seen)
        kind = "unclean elections too" if unclean else "clean elections"
        yield f"{kind}: {found or 'all is well'}"
        for what in sorted(seen):
            yield f"{seen[what]:10} {what}"


def story_of(seed: int, fault: str, unclean: bool) -> list[str]:
    """Return what happened in one run, step by step."""
    story: list[str] = []
    try:
        ScheduleModel(seed, fault, unclean, story=story).run(steps_of(seed, fault))
        story.append("all is well")
    except Violation as violation:
        story.append(str(violation))
    return story


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seeds", type=int, default=10_000)
    arguments.add_argument("--from", type=int, default=0, dest="first")
    arguments.add_argument("--faults", action="store_true")
    arguments.add_argument("--seed", type=int)
    arguments.add_argument("--unclean", action="store_true")
    arguments.add_argument("names", nargs="*")
    given = arguments.parse_args()
    lines: Iterable[str]
    if given.seed is not None:
        lines = story_of(given.seed, given.names[0] if given.names else "", given.unclean)
    elif given.faults:
        lines = (search_fault(name, given.seeds) for name in given.names or FAULTS)
    else:
        lines = search_designed(range(given.first, given.first + given.seeds))
    for line in lines:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
