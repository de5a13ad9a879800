"""`tarry profile`: which profiles the configuration file has, and what they say."""

from __future__ import annotations

import click

from tarry.cli.running import GuessingGroup, json_option, quietly
from tarry.cli.tables import print_json, print_table

EXAMPLES = """
\b
Examples:
  tarry profile list                       the profiles, and which is used
  tarry profile show production            what it says
  tarry topics list --profile production   use it once
  export TARRY_PROFILE=production          use it in this shell

\b
The file is ~/.config/tarry/config.toml (below XDG_CONFIG_HOME if that is set), or TARRY_PROFILES:
  profile = "local"
  [profiles.local]
  bootstrap-server = "127.0.0.1:9092"
  [profiles.production]
  bootstrap-server = "kafka1:9092,kafka2:9092"
  timeout = "30s"
  [profiles.production.client]
  "request.timeout.ms" = "10s"

\b
The command line wins over the environment, and that over the profile.
"""

LIST_EXAMPLES = """
\b
Examples:
  tarry profile list
  tarry profile list --json
"""

SHOW_EXAMPLES = """
\b
Examples:
  tarry profile show              the profile that is used when none is named
  tarry profile show production
"""


@click.group(cls=GuessingGroup, epilog=EXAMPLES)
def profile() -> None:
    """List and show the profiles of the configuration file."""


@profile.command("list", epilog=LIST_EXAMPLES)
@json_option
@quietly
def list_command(*, as_json: bool) -> None:
    """List the profiles, and which of them is used."""
    from tarry.cli.profiles import configuration_path, load

    path = configuration_path()
    found = load(path)
    profiles = list(found.profiles.values()) if found is not None else []
    used = _used(found.chosen if found is not None else None)
    if as_json:
        print_json(
            [
                {
                    "name": one.name,
                    "is_used": one.name == used,
                    "bootstrap_server": one.bootstrap,
                    "timeout": one.timeout,
                    "client": dict(one.client),
                }
                for one in profiles
            ]
        )
    elif not profiles:
        click.echo(f"there are no profiles in {path}; see tarry profile --help", err=True)
    else:
        rows = [
            [one.name, "used" if one.name == used else "", one.bootstrap or "-"] for one in profiles
        ]
        print_table(["profile", "", "bootstrap server"], rows)


@profile.command("show", epilog=SHOW_EXAMPLES)
@click.argument("name", required=False)
@json_option
@quietly
def show_command(*, name: str | None, as_json: bool) -> None:
    """Show what a profile says, by default the one that is used."""
    from tarry.cli.profiles import BadConfiguration, configuration_path, find

    chosen = find(name or _used(None))
    if chosen is None:
        raise BadConfiguration(
            f"no profile is used: name one, or choose one in {configuration_path()}"
        )
    if as_json:
        print_json(
            {
                "name": chosen.name,
                "bootstrap_server": chosen.bootstrap,
                "timeout": chosen.timeout,
                "client": dict(chosen.client),
            }
        )
        return
    print_table(
        ["key", "value"],
        [
            ["bootstrap-server", chosen.bootstrap or "-"],
            ["timeout", chosen.timeout or "-"],
            *[[f"client {key}", value] for key, value in chosen.client.items()],
        ],
    )


def _used(chosen: str | None) -> str | None:
    """Return the environment's profile, or else the one that the file chooses."""
    import os

    return os.environ.get("TARRY_PROFILE") or chosen
