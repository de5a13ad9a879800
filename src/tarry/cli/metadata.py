"""`tarry metadata`: what a cluster keeps in etcd, checked; a single broker's, moved there."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

import click

from tarry.base.errors import InvalidSetting
from tarry.base.store_address import StoreAddress, StoreFiles, parse_store_address
from tarry.cli.running import EXIT_FAILED, GuessingGroup, json_option, quietly
from tarry.cli.tables import bad, count_of, good, print_json, print_table
from tarry.cli.units import Count

if TYPE_CHECKING:
    from tarry.runtime.etcd.metadata import StoreCheck

EXAMPLES: Final = """
\b
Examples:
  tarry metadata check --store etcd://127.0.0.1:2379/demo
  tarry metadata migrate ./tarry-data --store etcd://127.0.0.1:2379/demo
"""

# Largest id of a broker: Kafka's ids have 32 bits.
_NODE_ID_MAX: Final = (1 << 31) - 1

# Options for the files of the settings metadata.store.…, in the order of `StoreFiles`.
_FILES: Final = (
    ("--ca", "With etcds://: PEM file of the authorities of etcd's certificate."),
    ("--cert", "With etcds://: PEM file of a certificate that is shown to etcd."),
    ("--key", "With etcds://: PEM file of its key, if that is in a file of its own."),
    ("--credentials", "File with one line user:password, a user of etcd."),
)

_FILE_KEYS: Final = ("ssl.ca", "ssl.certificate", "ssl.key", "credentials")


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def metadata() -> None:
    """Check what a cluster keeps in etcd, and move a single broker's metadata there."""


def _store_option(command: Any) -> Any:
    for name, help_text in reversed(_FILES):
        path = click.Path(dir_okay=False)
        command = click.option(name, type=path, default="", metavar="FILE", help=help_text)(command)
    return click.option(
        "--store",
        required=True,
        metavar="ADDRESS",
        help="Members of etcd and the prefix, as in metadata.store: etcd://HOST:PORT,.../PREFIX.",
    )(command)


def _address(text: str) -> StoreAddress:
    address = parse_store_address(text)
    if address is None:
        raise InvalidSetting(
            f"--store {text}: a single broker's own metadata is checked with tarry log verify; "
            "write --store etcd://127.0.0.1:2379/demo"
        )
    return address


# --- check

CHECK_EXAMPLES: Final = """
\b
Examples:
  tarry metadata check --store etcd://127.0.0.1:2379/demo
  tarry metadata check --store etcd://etcd-1:2379,etcd-2:2379/demo --json

\b
Reads all rows at one revision and changes nothing; brokers may run meanwhile.
Exit code: 0 if all is sound, 1 if a row is damaged, does not fit the others, or etcd itself has
trouble. Notes are told and are no damage.
"""


@metadata.command("check", epilog=CHECK_EXAMPLES)
@_store_option
@json_option
@quietly
def check_command(
    *, store: str, ca: str, cert: str, key: str, credentials: str, as_json: bool
) -> None:
    """Check that all rows in etcd can be read and fit each other."""
    from tarry.runtime.etcd.metadata import check_store, open_etcd

    address = _address(store)
    with ExitStack() as stack:
        etcd = open_etcd(stack, address, StoreFiles(ca, cert, key, credentials))
        found = check_store(etcd, address.prefix)
    if as_json:
        print_json(_check_json(store, found))
    else:
        _print_check(store, found)
    if found.problems or not found.rows.is_sound:
        sys.exit(EXIT_FAILED)


def _check_json(store: str, found: StoreCheck) -> dict[str, object]:
    rows = found.rows
    return {
        "store": store,
        "cluster_id": rows.cluster_id or None,
        "etcd_release": found.release,
        "revision": found.revision,
        "rows": rows.row_count,
        "brokers": len(rows.brokers),
        "living_brokers": len(rows.lives),
        "topics": len(rows.topics),
        "partitions": rows.partition_count,
        "deleted_topics": len(rows.deleted),
        "is_sound": rows.is_sound and not found.problems,
        "etcd_problems": found.problems,
        "etcd_notes": found.notes,
        "problems": [
            {"key": each.key, "is_damage": each.is_damage, "problem": each.problem}
            for each in rows.problems
        ],
    }


def _print_check(store: str, found: StoreCheck) -> None:
    rows = found.rows
    topics, partitions = len(rows.topics), rows.partition_count
    print_table(
        ["what", "found"],
        [
            ["cluster", rows.cluster_id or "-"],
            ["etcd", f"release {found.release}, revision {found.revision}"],
            ["brokers", f"{len(rows.brokers)} registered, {len(rows.lives)} live"],
            ["topics", f"{topics} with {count_of(partitions, 'partition')}"],
            ["deleted topics", f"{len(rows.deleted)} whose data is still being removed"],
            ["rows", rows.row_count],
        ],
    )
    if found.problems or found.notes or rows.problems:
        click.echo()
    for sentence in found.problems:
        click.echo(f"{bad('trouble')}: {sentence}")
    for sentence in found.notes:
        click.echo(f"note: {sentence}")
    for each in rows.problems:
        word = bad("damaged") if each.is_damage else "note"
        click.echo(f"{word}: {each.key}: {each.problem}")
    damaged = sum(each.is_damage for each in rows.problems)
    if damaged:
        verdict = bad(f"{count_of(damaged, 'problem')} in {count_of(rows.row_count, 'row')}")
    elif found.problems:
        verdict = bad("the rows are sound, etcd has trouble")
    else:
        verdict = good("sound")
    click.echo(f"\n{store}: {verdict}")


# --- migrate

MIGRATE_EXAMPLES: Final = """
\b
Examples:
  tarry metadata migrate ./tarry-data --store etcd://127.0.0.1:2379/demo
  tarry metadata migrate ./tarry-data --store etcd://etcd-1:2379/demo --node-id 7

\b
The broker has to be stopped, and the prefix has to be empty. Topics, settings and producer ids go
into etcd; records, groups and their offsets stay in DIR, which becomes that of the first broker of
the cluster. An attempt that fails changes nothing in DIR and can be repeated. There is no way back
but a copy of DIR that was made before.
"""


@metadata.command("migrate", epilog=MIGRATE_EXAMPLES)
@click.argument("directory", metavar="DIR", type=click.Path())
@_store_option
@click.option(
    "--node-id",
    type=Count(0, _NODE_ID_MAX),
    metavar="ID",
    help="Id of the broker in the cluster; by default the one that it has.",
)
@json_option
@quietly
def migrate_command(
    directory: str,
    *,
    store: str,
    ca: str,
    cert: str,
    key: str,
    credentials: str,
    node_id: int | None,
    as_json: bool,
) -> None:
    """Make a stopped single broker the first broker of a cluster."""
    from tarry.cli.status_line import StatusLine
    from tarry.runtime.etcd.metadata import migrate_directory, open_etcd

    address = _address(store)
    line = StatusLine()

    def tell(written: int, total: int) -> None:
        line.show(f"rows written: {written} of {total}")

    with ExitStack() as stack:
        stack.callback(line.clear)
        etcd = open_etcd(stack, address, StoreFiles(ca, cert, key, credentials))
        done = migrate_directory(directory, etcd, address.prefix, node_id, tell)
    if as_json:
        print_json(
            {
                "cluster_id": done.cluster_id,
                "node_id": done.node_id,
                "topics": done.topics,
                "partitions": done.partitions,
                "rows": done.rows,
                "rows_written": done.rows_written,
            }
        )
        return
    topics = count_of(done.topics, "topic")
    partitions = count_of(done.partitions, "partition")
    click.echo(f"{topics} and {partitions} moved: {count_of(done.rows, 'row')} in etcd")
    click.echo(f"start it as broker {done.node_id} of cluster {done.cluster_id}:")
    settings = [f"node.id={done.node_id}", f"metadata.store={store}", f"log.dirs={directory}"]
    for key_of_file, path in zip(_FILE_KEYS, (ca, cert, key, credentials), strict=True):
        if path:
            settings.append(f"metadata.store.{key_of_file}.location={path}")
    words = " ".join(f"--set {shlex.quote(each)}" for each in settings)
    click.echo(f"  tarry serve {words}")
