"""Broker CPU of this commit beside an earlier one: the same requests, in pairs.

    git clone . DIRECTORY && git -C DIRECTORY checkout COMMIT && make -C DIRECTORY setup
    make bench-before BEFORE=DIRECTORY

No row is to be more than 2 % dearer.  On a host whose speed changes by more than that,
ARGS=--instructions tells what CPU times cannot.
"""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from pathlib import Path

import brokers
import groups
import instructions
import pairs
import peers

SETTINGS = {**groups.SETTINGS, **pairs.AT_ONCE}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="checkout of the earlier commit, with its .venv")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--policies", default="os,commit", help="values of flush.policy")
    parser.add_argument(
        "--instructions", action="store_true", help="count instructions, not CPU time"
    )
    arguments = parser.parse_args()
    program = arguments.before / ".venv" / "bin" / "tarry"
    if not program.exists():
        raise SystemExit(f"{program} is missing; run make setup in {arguments.before}")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        wireload = peers.build_load(directory, "wireload")
        if arguments.instructions:
            print_instructions(program, wireload, directory)
            return
        runner = groups.Runner(peers.build_load(directory, "groupload"), groups.FULL)
        for policy in arguments.policies.split(","):
            with contextlib.ExitStack() as stack:
                before, now = (
                    stack.enter_context(
                        peers.tarry(directory / f"{name}-{policy}", SETTINGS, policy, name, each)
                    )
                    for name, each in (("before", program), ("now", peers.TARRY))
                )
                pair = (before, now)
                print(f"\nflush.policy={policy}; ", end="")
                pairs.print_head(pair)
                pairs.print_works(
                    pair, list(brokers.WORKS), wireload, arguments.rounds, arguments.seconds
                )
                if policy == "os":
                    print_groups(pair, runner, arguments.rounds)


def print_instructions(program: Path, wireload: Path, directory: Path) -> None:
    """Count the instructions of each request, one broker after the other."""
    instructions.check_tools()
    counted: dict[str, list[float]] = {}
    for name, each in (("before", program), ("now", peers.TARRY)):
        counts = directory / f"counts-{name}"
        prefix = instructions.command(counts)
        with peers.tarry(
            directory / name, pairs.AT_ONCE, program=each, prefix=prefix, name=name
        ) as broker:
            for work in instructions.WORKS:
                found = instructions.count(wireload, broker, counts, work)
                counted.setdefault(work.name, []).append(found)
                peers.tell_progress()
    print(f"\n{peers.machine()}\n")
    print("| thousands of instructions, a request | before | now | ratio |")
    print("|---|--:|--:|--:|")
    for row, (before, now) in counted.items():
        print(f"| {row} | {before:.1f} | {now:.1f} | {now / before:.3f} |")


def print_groups(pair: pairs.Pair, runner: groups.Runner, rounds: int) -> None:
    """Measure what members of groups cost."""

    def heartbeat(broker: peers.Broker) -> float:
        return runner.heartbeats(broker)["cpu_us"]

    def joins(broker: peers.Broker) -> float:
        return runner.join(broker)["stable_cpu_ms"]

    def commit(broker: peers.Broker) -> float:
        return runner.commits(broker)["cpu_us"]

    pairs.print_row("heartbeat, µs", pair, rounds, heartbeat)
    pairs.print_row(f"{runner.size.joining:,} members join, ms", pair, rounds, joins)
    pairs.print_row("commit of a simple consumer, µs", pair, rounds, commit)


if __name__ == "__main__":
    main()
