"""`tarry configs`: settings of topics and brokers, while they run."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from tarry.cli.guesses import did_you_mean
from tarry.cli.running import (
    Cluster,
    GuessingGroup,
    cluster_options,
    fail,
    json_option,
    quietly,
)
from tarry.cli.tables import count_of, print_json, print_table, printable
from tarry.cli.topic_choice import explained, guard_internal, internal_option
from tarry.cli.units import setting_text

if TYPE_CHECKING:
    from tarry.client import Admin, ConfigChange, ConfigEntry

EXAMPLES: Final = """
\b
A setting of a topic applies to it alone; one of a broker is the default for its topics.

\b
Examples:
  tarry configs get --topic orders
  tarry configs set --topic orders retention.ms=1d
  tarry configs unset --topic orders retention.ms
  tarry configs get --broker 1 log.retention.ms
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def configs() -> None:
    """Get, set and unset settings of topics and brokers."""


class ConfigTarget(NamedTuple):
    """Target of settings: a topic, a broker, or all brokers."""

    topic: str | None
    broker_id: int | None

    def __str__(self) -> str:
        if self.topic is not None:
            return f"topic {self.topic}"
        return "the brokers" if self.broker_id is None else f"broker {self.broker_id}"

    def read(self, admin: Admin, timeout: float, *, explain: bool) -> list[ConfigEntry]:
        from tarry.client import ClientError

        if self.topic is None:
            return admin.describe_broker_configs(self.broker_id, timeout, explain=explain)
        try:
            return admin.describe_topic_configs(self.topic, timeout, explain=explain)
        except ClientError as error:
            raise explained(admin, error, self.topic, timeout) from None

    def change(
        self, admin: Admin, changes: list[ConfigChange], timeout: float, *, validate_only: bool
    ) -> None:
        from tarry.client import ClientError

        if self.topic is None:
            admin.change_broker_configs(
                self.broker_id, changes, validate_only=validate_only, timeout=timeout
            )
            return
        try:
            admin.change_topic_configs(
                self.topic, changes, validate_only=validate_only, timeout=timeout
            )
        except ClientError as error:
            raise explained(admin, error, self.topic, timeout) from None


def _target_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a target, one of three; the command gets one `target`."""

    @click.option("--topic", metavar="NAME", help="Settings of this topic.")
    @click.option("--broker", type=click.IntRange(0), metavar="ID", help="Settings of this broker.")
    @click.option("--brokers", is_flag=True, help="Settings of all brokers together.")
    @functools.wraps(command)
    def run(*, topic: str | None, broker: int | None, brokers: bool, **options: Any) -> None:
        if [topic is not None, broker is not None, brokers].count(True) != 1:
            raise click.UsageError("name whose settings: --topic NAME, --broker ID or --brokers")
        command(target=ConfigTarget(topic, broker), **options)

    return run


# --- get

GET_EXAMPLES: Final = """
\b
Examples:
  tarry configs get --topic orders                     what was set, for it or for its brokers
  tarry configs get --topic orders --all               defaults as well
  tarry configs get --topic orders retention.ms        one setting
  tarry configs get --topic orders retention.ms -q     its value alone, for scripts
  tarry configs get --topic orders --all --explain     what each of them means
  tarry configs get --broker 1 --all
  tarry configs get --brokers                          what is set for all brokers together
"""


@configs.command("get", epilog=GET_EXAMPLES)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@_target_options
@cluster_options
@click.option("--all", "with_defaults", is_flag=True, help="Show defaults as well.")
@click.option("--explain", is_flag=True, help="Show type, meaning and origin of each.")
@click.option("-q", "--quiet", is_flag=True, help="Print the values only.")
@json_option
@quietly
def get_command(
    keys: tuple[str, ...],
    *,
    target: ConfigTarget,
    cluster: Cluster,
    with_defaults: bool,
    explain: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Show settings and where they come from."""
    with cluster.admin() as admin:
        entries = target.read(admin, cluster.timeout, explain=explain or as_json)
    chosen = _chosen(entries, keys, target, with_defaults=with_defaults)
    if as_json:
        print_json([_entry_json(one) for one in chosen])
    elif quiet:
        for one in chosen:
            click.echo(printable(one.value or ""))
    elif not chosen:
        click.echo(f"{target} has no settings of its own; --all shows the defaults", err=True)
    elif explain:
        _print_explained(chosen)
    else:
        print_table(
            ["setting", "value", "from", ""],
            [[one.name, _value(one), one.source, _marks(one)] for one in chosen],
        )


def _chosen(
    entries: list[ConfigEntry], keys: Sequence[str], target: ConfigTarget, *, with_defaults: bool
) -> list[ConfigEntry]:
    if not keys:
        return [one for one in entries if with_defaults or not one.is_default]
    known = {one.name: one for one in entries}
    for key in keys:
        if key not in known:
            fail(f"{target} has no setting {key!r}{did_you_mean(key, known)}")
    return [known[key] for key in dict.fromkeys(keys)]


def _value(one: ConfigEntry) -> str:
    if one.is_sensitive:
        return "(secret)"
    return "" if one.value is None else one.value


def _marks(one: ConfigEntry) -> str:
    return "only at start" if one.is_read_only else ""


def _print_explained(entries: list[ConfigEntry]) -> None:
    for number, one in enumerate(entries):
        if number:
            click.echo()
        click.echo(f"{one.name} = {printable(_value(one))}")
        facts = [one.type_name, f"from: {one.source}", _marks(one)]
        click.echo(f"  {', '.join(fact for fact in facts if fact)}")
        for synonym in one.synonyms:
            click.echo(f"  {synonym.source}: {synonym.name} = {printable(synonym.value or '')}")
        if one.documentation:
            click.echo(click.wrap_text(_plain(one.documentation), 96, "  ", "  "))


def _plain(documentation: str) -> str:
    """Return the documentation of a setting without HTML, in which Apache Kafka writes it."""
    import html
    import re

    return html.unescape(re.sub(r"<[^<>]*>", "", documentation))


def _entry_json(one: ConfigEntry) -> dict[str, object]:
    return {
        "name": one.name,
        "value": one.value,
        "source": one.source,
        "type": one.type_name,
        "is_default": one.is_default,
        "is_read_only": one.is_read_only,
        "is_sensitive": one.is_sensitive,
        "synonyms": [synonym._asdict() for synonym in one.synonyms],
        "documentation": one.documentation,
    }


# --- set and unset

SET_EXAMPLES: Final = """
\b
Examples:
  tarry configs set --topic orders retention.ms=1d segment.bytes=100MB
  tarry configs set --topic orders cleanup.policy+=compact      add to a list
  tarry configs set --topic orders cleanup.policy-=delete       take from a list
  tarry configs set --broker 1 log.cleaner.backoff.ms=1s
  tarry configs set --topic orders retention.ms=1 --validate-only

\b
All of the settings are changed, or none.  They apply at once and survive a restart.
"""


@configs.command("set", epilog=SET_EXAMPLES)
@click.argument("items", nargs=-1, required=True, metavar="KEY=VALUE...")
@_target_options
@cluster_options
@internal_option
@click.option("--validate-only", is_flag=True, help="Only check whether it could be done.")
@json_option
@quietly
def set_command(
    items: tuple[str, ...],
    *,
    target: ConfigTarget,
    cluster: Cluster,
    internal: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Change settings of a topic or of brokers."""
    changes = parse_changes(items, ())
    change = _Change(cluster, target, changes, internal=internal, validate_only=validate_only)
    change.run(as_json=as_json)


UNSET_EXAMPLES: Final = """
\b
Examples:
  tarry configs unset --topic orders retention.ms      the broker's value applies again
  tarry configs unset --broker 1 log.cleaner.backoff.ms
"""


@configs.command("unset", epilog=UNSET_EXAMPLES)
@click.argument("keys", nargs=-1, required=True, metavar="KEY...")
@_target_options
@cluster_options
@internal_option
@click.option("--validate-only", is_flag=True, help="Only check whether it could be done.")
@json_option
@quietly
def unset_command(
    keys: tuple[str, ...],
    *,
    target: ConfigTarget,
    cluster: Cluster,
    internal: bool,
    validate_only: bool,
    as_json: bool,
) -> None:
    """Remove settings, so that the defaults apply again."""
    changes = parse_changes((), keys)
    change = _Change(cluster, target, changes, internal=internal, validate_only=validate_only)
    change.run(as_json=as_json)


class _Change(NamedTuple):
    """Change of settings, made as a whole or not at all."""

    cluster: Cluster
    target: ConfigTarget
    changes: list[ConfigChange]
    internal: bool
    validate_only: bool

    def run(self, *, as_json: bool) -> None:
        """Change the settings, and print the outcome."""
        target, timeout = self.target, self.cluster.timeout
        with self.cluster.admin() as admin:
            names = [] if target.topic is None else [target.topic]
            guard_internal(admin, names, "change it", timeout, internal=self.internal)
            target.change(admin, self.changes, timeout, validate_only=self.validate_only)
        if as_json:
            print_json(
                {
                    "topic": target.topic,
                    "broker_id": target.broker_id,
                    "executed": not self.validate_only,
                    "settings": [change.name for change in self.changes],
                }
            )
        else:
            done = "could be changed" if self.validate_only else "changed"
            click.echo(f"{target}: {count_of(len(self.changes), 'setting')} {done}")


def parse_changes(items: Sequence[str], unset: Sequence[str]) -> list[ConfigChange]:
    """Parse `KEY=VALUE`, `KEY+=VALUE`, `KEY-=VALUE`, and keys to be unset."""
    from tarry.client import APPEND, DELETE, SET, SUBTRACT, ConfigChange

    operations = {"+": APPEND, "-": SUBTRACT}
    changes: list[ConfigChange] = []
    for item in items:
        key, equals, value = item.partition("=")
        operation = operations.get(key[-1:], SET)
        name = key if operation == SET else key[:-1]
        if not equals or not name:
            raise click.UsageError(f"invalid setting {item!r}: write it as KEY=VALUE")
        changes.append(ConfigChange(name, operation, setting_text(name, value)))
    changes.extend(ConfigChange(key, DELETE) for key in unset)
    names = [change.name for change in changes]
    for name in names:
        if names.count(name) > 1:
            raise click.UsageError(f"{name} is changed twice")
    return changes
