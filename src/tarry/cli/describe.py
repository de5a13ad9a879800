"""`tarry describe`: the cluster behind an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tarry.base.limits import CALENDARS_APART_MS_MAX
from tarry.cli.running import (
    Cluster,
    cluster_options,
    json_option,
    quietly,
)
from tarry.cli.tables import bad, count_of, print_json, print_table

if TYPE_CHECKING:
    from tarry.client import Admin, ComparedCalendar

EXAMPLES = """
\b
Examples:
  tarry describe                          the cluster at 127.0.0.1:9092
  tarry describe -b kafka-1:9092 --apis   which requests it takes, in which versions
  tarry describe --json | jq .brokers     for programs
"""


@click.command(epilog=EXAMPLES)
@cluster_options
@click.option("--apis", is_flag=True, help="Show the versions of each API that the broker takes.")
@json_option
@quietly
def describe(*, cluster: Cluster, apis: bool, as_json: bool) -> None:
    """Show a cluster: its id, its brokers, its topics, how far the brokers' clocks are apart."""
    with cluster.admin() as admin:
        if apis:
            _print_apis(admin, cluster.timeout, as_json=as_json)
        else:
            _print_cluster(admin, cluster.timeout, as_json=as_json)


def _print_cluster(admin: Admin, timeout: float, *, as_json: bool) -> None:
    cluster = admin.describe_cluster(timeout)
    calendars = admin.compare_calendars(timeout)
    topics = admin.list_topics(timeout)
    partition_count = sum(len(topic.partitions) for topic in topics)
    led = dict.fromkeys((broker.broker_id for broker in cluster.brokers), 0)
    for topic in topics:
        for partition in topic.partitions.values():
            if partition.leader_id in led:
                led[partition.leader_id] += 1
    if as_json:
        print_json(
            {
                "cluster_id": cluster.cluster_id,
                "controller_id": cluster.controller_id,
                "topics": len(topics),
                "partitions": partition_count,
                "brokers": [
                    {
                        "broker_id": broker.broker_id,
                        "host": broker.address.host,
                        "port": broker.address.port,
                        "rack": broker.rack,
                        "leads": led[broker.broker_id],
                        "is_fenced": broker.broker_id in cluster.fenced_ids,
                    }
                    for broker in cluster.brokers
                ],
                "calendars": [calendar._asdict() for calendar in calendars],
            }
        )
        return
    click.echo(f"cluster     {cluster.cluster_id}")
    click.echo(f"controller  {cluster.controller_id}")
    counts = f"{count_of(len(topics), 'topic')}, {count_of(partition_count, 'partition')}"
    click.echo(f"topics      {counts}\n")
    print_table(
        ["broker", "address", "rack", "leads"],
        [
            [
                broker.broker_id,
                f"{broker.address}{' (fenced)' if broker.broker_id in cluster.fenced_ids else ''}",
                broker.rack or "-",
                led[broker.broker_id],
            ]
            for broker in cluster.brokers
        ],
    )
    if calendars:
        click.echo(f"\n{_apart_text(calendars)}")


def _apart_text(calendars: list[ComparedCalendar]) -> str:
    """Say how far calendars are apart, by the two brokers that disagree most."""
    most = max(calendars, key=_apart_ms)
    side = "ahead of" if most.ahead_ms > 0 else "behind"
    text = (
        f"calendars   apart by {_apart_ms(most):,} ms at most: broker {most.broker_id} is {side} "
        f"broker {most.seen_by}"
    )
    return bad(text) if _apart_ms(most) > CALENDARS_APART_MS_MAX else text


def _apart_ms(calendar: ComparedCalendar) -> int:
    return abs(calendar.ahead_ms)


def _print_apis(admin: Admin, timeout: float, *, as_json: bool) -> None:
    from tarry.protocol.api_keys import APIS

    versions = admin.api_versions(timeout=timeout)
    rows = [
        (key, APIS[key].name if key in APIS else "-", low, high)
        for key, (low, high) in sorted(versions.items())
    ]
    if as_json:
        print_json(
            [
                {"api_key": key, "name": name if name != "-" else None, "min": low, "max": high}
                for key, name, low, high in rows
            ]
        )
        return
    print_table(
        ["key", "api", "broker takes", "tarry speaks"],
        [
            [
                key,
                name,
                f"{low}-{high}",
                f"{APIS[key].version_min}-{APIS[key].version_max}" if key in APIS else "-",
            ]
            for key, name, low, high in rows
        ],
    )
