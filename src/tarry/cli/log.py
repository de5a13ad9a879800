"""`tarry log`: the data on disks: sizes from a running broker, and a look into a stopped one's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.log_dump import dump_command
from tarry.cli.running import (
    EXIT_FAILED,
    Cluster,
    GuessingGroup,
    cluster_options,
    json_option,
    quietly,
)
from tarry.cli.tables import (
    SizeCell,
    bad,
    complain,
    count_of,
    good,
    print_json,
    print_table,
    printable_path,
)
from tarry.cli.topic_choice import check_patterns, chosen_topics, matcher
from tarry.cli.units import size_text

if TYPE_CHECKING:
    from tarry.client import Admin, LogDirectory
    from tarry.runtime.comparison import ComparedReplicas
    from tarry.runtime.inspection import Finding, Verified, VerifiedLog

EXAMPLES: Final = """
\b
Examples:
  tarry log dirs                       how much each topic takes, and how much room is left
  tarry log verify ./tarry-data        is the data of a stopped broker sound?
  tarry log dump ./tarry-data/orders-0 what is in its segments and indexes
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def log() -> None:
    """Show the sizes of logs, verify the data of a stopped broker, dump its files."""


log.add_command(dump_command)

# --- dirs

DIRS_EXAMPLES: Final = """
\b
Examples:
  tarry log dirs                   a line a topic, the largest first
  tarry log dirs 'orders-*'        these topics only
  tarry log dirs --partitions      a line a partition
  tarry log dirs --json
"""


@log.command("dirs", epilog=DIRS_EXAMPLES)
@click.argument("names", nargs=-1, metavar="[TOPIC]...")
@cluster_options
@click.option("--partitions", "by_partition", is_flag=True, help="Print a line a partition.")
@json_option
@quietly
def dirs_command(
    names: tuple[str, ...], *, cluster: Cluster, by_partition: bool, as_json: bool
) -> None:
    """Show the log directories of the brokers and what topics take in them."""
    check_patterns(names)
    with cluster.admin() as admin:
        directories = admin.describe_log_dirs(None, cluster.timeout)
        missing = _missing(admin, names, cluster.timeout)
    wanted = [matcher(name) for name in names]
    for number, one in enumerate(directories):
        replicas = [
            replica
            for replica in one.replicas
            if not wanted or any(is_meant(replica.place[0]) for is_meant in wanted)
        ]
        directories[number] = one._replace(replicas=replicas)
    if as_json:
        print_json([_directory_json(one) for one in directories])
    else:
        for number, one in enumerate(directories):
            if number:
                click.echo()
            _print_directory(one, by_partition=by_partition)
    failures = [str(one.error) for one in directories if one.error is not None] + missing
    for sentence in failures:
        complain(sentence)
    if failures:
        sys.exit(EXIT_FAILED)


def _missing(admin: Admin, names: tuple[str, ...], timeout: float) -> list[str]:
    """Return a sentence for each name and pattern that is about no topic."""
    return chosen_topics(admin.list_topics(timeout), names, internal=True)[1] if names else []


def _directory_json(one: LogDirectory) -> dict[str, object]:
    return {
        "broker_id": one.broker_id,
        "log_dir": one.path,
        "error": None if one.error is None else str(one.error),
        "total_bytes": one.total_bytes,
        "usable_bytes": one.usable_bytes,
        "replicas": [
            {
                "topic": replica.place[0],
                "partition": replica.place[1],
                "size_bytes": replica.size_bytes,
                "offset_lag": replica.offset_lag,
                "is_future": replica.is_future,
            }
            for replica in one.replicas
        ],
    }


def _print_directory(one: LogDirectory, *, by_partition: bool) -> None:
    taken = sum(replica.size_bytes for replica in one.replicas)
    facts = [f"broker {one.broker_id}", one.path, size_text(taken)]
    if one.usable_bytes is not None and one.total_bytes is not None:
        facts.append(f"{size_text(one.usable_bytes)} of {size_text(one.total_bytes)} free")
    click.echo("  ".join(facts))
    if by_partition:
        rows: list[list[object]] = [
            [*replica.place, SizeCell(size_text(replica.size_bytes))]
            for replica in sorted(one.replicas)
        ]
        titles = ["topic", "partition", "size"]
    else:
        sizes: dict[str, list[int]] = {}
        for replica in one.replicas:
            sizes.setdefault(replica.place[0], []).append(replica.size_bytes)
        ordered = sorted(sizes.items(), key=lambda item: (-sum(item[1]), item[0]))
        rows = [[name, len(each), SizeCell(size_text(sum(each)))] for name, each in ordered]
        titles = ["topic", "partitions", "size"]
    if rows:
        print_table(titles, rows)


# --- verify

VERIFY_EXAMPLES: Final = """
\b
Examples:
  tarry log verify ./tarry-data              all partitions
  tarry log verify ./tarry-data/orders-0     one partition
  tarry log verify ./tarry-data --json | jq .is_sound
  tarry log verify ./broker-1 --against ./broker-2   are their replicas alike?

\b
Reads every batch (CRC, records, offsets) and compares the indexes, snapshots, checkpoints and
recovery points with them.  Nothing is changed.  The broker has to be stopped.
Exit code: 0 if all is sound, 1 if something is damaged.  What a crash leaves behind, such as a
torn tail, is told and is no damage: the next start mends it.
With --against, the partitions that both directories have are compared, record by record, as far as
they are known to be committed.  Both brokers have to be stopped cleanly.
"""


@log.command("verify", epilog=VERIFY_EXAMPLES)
@click.argument("directory", metavar="DIR", type=click.Path())
@click.option(
    "--against",
    "others",
    metavar="DIR",
    multiple=True,
    type=click.Path(),
    help="Compare its partitions with those of another stopped broker; may be repeated.",
)
@json_option
@quietly
def verify_command(directory: str, *, others: tuple[str, ...], as_json: bool) -> None:
    """Check the data directory of a stopped broker for damage."""
    from tarry.cli.status_line import StatusLine
    from tarry.runtime.comparison import compare_directories
    from tarry.runtime.inspection import InspectedDirectory, verify_directory

    line = StatusLine()
    done = 0
    with InspectedDirectory(directory) as inspected:
        total = inspected.size_bytes()

        def told(partition: str, size: int) -> None:
            nonlocal done
            done += size
            share = 100 * done // total if total else 100
            line.show(f"verifying {share} %, {size_text(done)} of {size_text(total)}: {partition}")

        comparisons: list[ComparedReplicas] = []
        try:
            verified = verify_directory(inspected, told)
            for other in others:
                line.show(f"comparing with {printable_path(other)}")
                with InspectedDirectory(other) as opposite:
                    comparisons.append(compare_directories(inspected, opposite))
        finally:
            line.clear()
    if as_json:
        shown = _verified_json(verified)
        if others:
            shown["comparisons"] = [_compared_json(one) for one in comparisons]
        print_json(shown)
    else:
        _print_verified(verified)
        for one in comparisons:
            _print_compared(one)
    if verified.is_damaged or any(one.differences for one in comparisons):
        sys.exit(EXIT_FAILED)


def _compared_json(compared: ComparedReplicas) -> dict[str, object]:
    return {
        "directory": printable_path(compared.other_root),
        "partitions": compared.partitions,
        "is_alike": not compared.differences,
        "differences": [
            {
                "partition": one.partition,
                "offset": one.offset if one.offset >= 0 else None,
                "problem": one.problem,
            }
            for one in compared.differences
        ],
    }


def _print_compared(compared: ComparedReplicas) -> None:
    for one in compared.differences:
        offset = "" if one.offset < 0 else f" at offset {one.offset}"
        click.echo(f"{bad('differs')}: {one.partition}{offset}: {one.problem}")
    count = count_of(compared.partitions, "partition")
    if compared.differences:
        verdict = bad(f"of {count} in both, not all are alike")
    else:
        verdict = good(f"{count} in both, alike")
    click.echo(f"{printable_path(compared.other_root)}: {verdict}")


def _verified_json(verified: Verified) -> dict[str, object]:
    return {
        "directory": printable_path(verified.root),
        "was_clean": verified.was_clean,
        "is_sound": not verified.is_damaged,
        "findings": [_finding_json(one) for one in verified.findings],
        "partitions": [
            {
                "partition": one.directory,
                "is_sound": not one.is_damaged,
                "segments": one.segments,
                "batches": one.batches,
                "records": one.records,
                "size_bytes": one.size_bytes,
                "begin_offset": one.start_offset,
                "end_offset": one.end_offset,
                "findings": [_finding_json(finding) for finding in one.findings],
                "findings_left_out": one.left_out,
            }
            for one in verified.logs
        ],
    }


def _finding_json(one: Finding) -> dict[str, object]:
    return {
        "file": printable_path(one.path),
        "is_damage": one.is_damage,
        "offset": one.offset if one.offset >= 0 else None,
        "position": one.position if one.position >= 0 else None,
        "problem": one.problem,
    }


def _print_verified(verified: Verified) -> None:
    rows = [
        [
            one.directory,
            one.segments,
            one.batches,
            one.records,
            SizeCell(size_text(one.size_bytes)),
            one.start_offset,
            one.end_offset,
            _state(one),
        ]
        for one in verified.logs
    ]
    if rows:
        titles = ["partition", "segments", "batches", "records", "size", "begin", "end", "state"]
        print_table(titles, rows)
    findings = [
        *verified.findings,
        *(finding for one in verified.logs for finding in one.findings),
    ]
    if findings:
        click.echo()
    for finding in findings:
        word = bad("damaged") if finding.is_damage else "note"
        place = "" if finding.position < 0 else f" at position {finding.position}"
        offset = "" if finding.offset < 0 else f" (offset {finding.offset}{place})"
        click.echo(f"{word}: {printable_path(finding.path)}{offset}: {finding.problem}")
    for one in verified.logs:
        if one.left_out:
            click.echo(f"{one.directory}: {one.left_out} more findings are not shown")
    damaged = sum(one.is_damaged for one in verified.logs)
    stop = "stopped cleanly" if verified.was_clean else "not stopped cleanly"
    count = count_of(len(verified.logs), "partition")
    if verified.is_damaged:
        verdict = bad(f"{damaged} of {count} damaged")
    else:
        verdict = good(f"{count} sound")
    click.echo(f"\n{printable_path(verified.root)}: {verdict}; the broker was {stop}")


def _state(one: VerifiedLog) -> str:
    if one.is_damaged:
        return bad("damaged")
    return "see note" if one.findings else "ok"
