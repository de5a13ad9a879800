"""`tarry health`: whether a cluster answers, can be written, and has lost nothing."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from tarry.cli.running import EXIT_FAILED, Cluster, cluster_options, json_option, quietly
from tarry.cli.tables import bad, complain, count_of, good, print_json
from tarry.cli.units import Size, size_text

if TYPE_CHECKING:
    from tarry.client import Admin, ClusterDescription, LogDirectory, Topic

EXAMPLES: Final = """
\b
Examples:
  tarry health                     ok, or what is wrong; exit code 0 or 1
  tarry health -m 2s -q            for a probe: nothing is printed, the exit code tells
  tarry health --live -m 2s        only whether a broker answers: restart it if not
  tarry health --min-free 10GB     a disk with less room is a problem
  tarry health --json

\b
Healthy is a cluster whose brokers answer, whose disks have room, and all of whose partitions have
a leader, are not damaged and have their replicas in sync.

\b
In Kubernetes, --live is for a livenessProbe; without it, it is for a readinessProbe.
"""

# Free bytes that a disk needs: it refuses records earlier than at its last byte.
FREE_BYTES_MIN: Final = "64MB"

# Problems of partitions that are printed one by one, at most.
TOLD_MAX: Final = 10


@click.command(epilog=EXAMPLES)
@cluster_options
@click.option("--live", is_flag=True, help="Check only that a broker answers.")
@click.option(
    "--min-free",
    type=Size(),
    default=FREE_BYTES_MIN,
    show_default=True,
    metavar="SIZE",
    help="Room that a disk must have at least.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print nothing if all is well.")
@json_option
@quietly
def health(*, cluster: Cluster, live: bool, min_free: int, quiet: bool, as_json: bool) -> None:
    """Check that a cluster answers, can be written and is not damaged."""
    from tarry.client import ClientError

    report = HealthReport()
    try:
        with cluster.admin() as admin:
            report.look(admin, cluster.timeout, min_free, live=live)
    except ClientError as error:
        report.problems.append(str(error))
    if as_json:
        print_json(report.as_json())
    elif report.problems:
        for problem in report.problems[:TOLD_MAX]:
            complain(problem)
        if len(report.problems) > TOLD_MAX:
            more = count_of(len(report.problems) - TOLD_MAX, "more problem")
            complain(f"{more}; --json tells all of them")
        if not quiet:
            click.echo(bad("not healthy"))
    elif not quiet:
        click.echo(f"{good('ok')}  {report.counts()}")
    if report.problems:
        sys.exit(EXIT_FAILED)


class HealthReport:
    """Health of a cluster: what was seen, and what is wrong with it."""

    def __init__(self) -> None:
        self.brokers: int | None = None
        self.topics: int | None = None
        self.partitions: int | None = None
        self.free_bytes: int | None = None
        self.problems: list[str] = []

    def look(self, admin: Admin, timeout: float, free_min: int, *, live: bool) -> None:
        """Ask the cluster; `live`: only whether it answers."""
        description = admin.describe_cluster(timeout)
        self.brokers = len(description.brokers)
        if live:
            return
        self._look_at_brokers(description)
        topics = admin.list_topics(timeout)
        self.topics = len(topics)
        self.partitions = sum(len(topic.partitions) for topic in topics)
        for topic in topics:
            self._look_at_topic(topic)
        for directory in admin.describe_log_dirs({}, timeout):
            self._look_at_disk(directory, free_min)

    def _look_at_brokers(self, description: ClusterDescription) -> None:
        for broker_id in description.fenced_ids:
            self.problems.append(f"broker {broker_id} is fenced: it does not take part")

    def _look_at_topic(self, topic: Topic) -> None:
        from tarry.cli.topic_sizes import state_of

        advice = {
            "damaged": "takes no records, or lets none wait, and that log is read up to the damage "
            "only; see the broker's log, then tarry log verify",
            "no leader": "can be neither written nor read",
        }
        for index, partition in topic.partitions.items():
            state = state_of(partition)
            if state != "ok":
                meaning = advice.get(state, "has not all of its replicas")
                self.problems.append(f"{topic.name} [{index}] is {_in_words(state)}: it {meaning}")

    def _look_at_disk(self, directory: LogDirectory, free_min: int) -> None:
        free = directory.usable_bytes
        if directory.error is not None:
            self.problems.append(str(directory.error))
        elif free is not None:
            self.free_bytes = free if self.free_bytes is None else min(free, self.free_bytes)
            if free < free_min:
                self.problems.append(
                    f"the disk of broker {directory.broker_id} ({directory.path}) has "
                    f"{size_text(free)} free, less than {size_text(free_min)}"
                )

    def counts(self) -> str:
        """Summary of what was looked at, for people."""
        facts = [count_of(self.brokers or 0, "broker")]
        if self.topics is not None:
            facts.append(count_of(self.topics, "topic"))
        if self.partitions is not None:
            facts.append(count_of(self.partitions, "partition"))
        if self.free_bytes is not None:
            facts.append(f"{size_text(self.free_bytes)} free")
        return ", ".join(facts)

    def as_json(self) -> dict[str, object]:
        return {
            "is_healthy": not self.problems,
            "brokers": self.brokers,
            "topics": self.topics,
            "partitions": self.partitions,
            "free_bytes": self.free_bytes,
            "problems": self.problems,
        }


def _in_words(state: str) -> str:
    return "without a leader" if state == "no leader" else state
