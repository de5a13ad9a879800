"""Profiles: clusters that have a name in the user's configuration file.

    profile = "local"                    # the one that is used when none is named

    [profiles.local]
    bootstrap-server = "127.0.0.1:9092"

    [profiles.production]
    bootstrap-server = "kafka1:9092,kafka2:9092"
    timeout = "30s"

    [profiles.production.client]         # settings of the client, by Kafka's keys
    "request.timeout.ms" = "10s"

The command line wins over the environment, and that over a profile.  A setting of -X wins over
the same one of a profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from tarry.base.errors import TarryError
from tarry.cli.guesses import did_you_mean

FILE_VARIABLE: Final = "TARRY_PROFILES"
PLACE: Final = Path("tarry") / "config.toml"

# Key of click's context under which the settings of the chosen profile wait for the client.
_META_KEY: Final = "tarry.profile.client"

KEYS: Final = ("bootstrap-server", "timeout", "client")


class BadConfiguration(TarryError):
    """A configuration file that cannot be used; names the file, the line and the key."""


class Profile(NamedTuple):
    """Content of a profile; None, or an empty mapping, for what the profile does not set."""

    name: str
    bootstrap: str | None
    timeout: str | None
    client: Mapping[str, str | int | bool]


class Configuration(NamedTuple):
    """Profiles in the order of the file, and the one that is used when none is named."""

    path: Path
    profiles: dict[str, Profile]
    chosen: str | None


def configuration_path(environment: Mapping[str, str] = os.environ) -> Path:
    """`$TARRY_PROFILES`, or `tarry/config.toml` below `$XDG_CONFIG_HOME` or `~/.config`."""
    named = environment.get(FILE_VARIABLE)
    if named:
        return Path(named)
    home = environment.get("XDG_CONFIG_HOME")
    # Ignore a relative path, as the XDG specification demands.
    if home and Path(home).is_absolute():
        return Path(home) / PLACE
    return Path(environment.get("HOME") or "~").expanduser() / ".config" / PLACE


def load(path: Path) -> Configuration | None:
    """Load the configuration in a file; None if there is no file.  Raises BadConfiguration."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadConfiguration(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadConfiguration(f"{path} is not valid UTF-8") from None
    # Loaded here, because most users have no such file.
    import tomllib

    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"line (\d+)", str(error))
        line = f" line {place[1]}" if place else ""
        raise BadConfiguration(f"{path}{line}: not valid TOML: {error}") from None
    return _Reader(path, text).read(found)


class _Reader:
    """Reader of the parsed file: checks it, and finds the lines that its errors name."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()

    def read(self, found: dict[str, Any]) -> Configuration:
        for key in found:
            if key not in ("profile", "profiles"):
                raise self._wrong("", key, "unknown key; the file has profile and [profiles.NAME]")
        tables = found.get("profiles", {})
        if not isinstance(tables, dict):
            raise self._wrong("", "profiles", "write a table [profiles.NAME] for each profile")
        profiles = {name: self._profile(name, table) for name, table in tables.items()}
        chosen = found.get("profile")
        if chosen is not None and not isinstance(chosen, str):
            raise self._wrong("", "profile", "has to be the name of a profile, in quotes")
        if chosen is not None and chosen not in profiles:
            raise self._wrong("", "profile", f"there is no profile {chosen!r}; {_names(profiles)}")
        return Configuration(self._path, profiles, chosen)

    def _profile(self, name: str, table: object) -> Profile:
        where = f"profiles.{name}"
        if not isinstance(table, dict):
            raise self._wrong("profiles", name, f"write a table [{where}]")
        for key in table:
            if key not in KEYS:
                raise self._wrong(where, key, f"unknown key; a profile has {', '.join(KEYS)}")
        timeout = table.get("timeout")
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, str | int)
        ):
            raise self._wrong(where, "timeout", 'has to be seconds or a time, such as "30s"')
        bootstrap = table.get("bootstrap-server")
        if bootstrap is not None and not isinstance(bootstrap, str):
            raise self._wrong(where, "bootstrap-server", 'has to be text: "host:port,host:port"')
        return Profile(
            name,
            bootstrap,
            None if timeout is None else str(timeout),
            self._client(f"{where}.client", table.get("client", {})),
        )

    def _client(self, where: str, table: object) -> dict[str, str | int | bool]:
        if not isinstance(table, dict):
            raise self._wrong("", "client", f"write a table [{where}]")
        # Loaded here, because most users have no such file.
        from tarry.client.settings import CLIENT_SETTINGS

        found: dict[str, str | int | bool] = {}
        for key, value in table.items():
            if not isinstance(value, str | int):
                # TOML reads an unquoted request.timeout.ms as a table in a table.
                hint = f'; write "{key}...." in quotes' if isinstance(value, dict) else ""
                raise self._wrong(where, key, f"has to be text, a number, true or false{hint}")
            if key not in CLIENT_SETTINGS:
                guess = did_you_mean(key, CLIENT_SETTINGS)
                raise self._wrong(where, key, f"unknown setting{guess}")
            if key == "bootstrap.servers":
                raise self._wrong(where, key, "write bootstrap-server in the profile instead")
            found[key] = value
        return found

    def _wrong(self, table: str, key: str, sentence: str) -> BadConfiguration:
        line = self._line_of(table, key)
        place = f" line {line}" if line else ""
        return BadConfiguration(f"{self._path}{place}: {key}: {sentence}")

    def _line_of(self, table: str, key: str) -> int:
        """Return the line of a key below the header of its table; 0 if it is written in another
        way.
        """
        current = ""
        name = re.escape(key)
        wanted = re.compile(rf"\s*[\"']?{name}[\"']?\s*[=.]")
        for number, line in enumerate(self._lines, 1):
            header = re.match(r"\s*\[+\s*(.*?)\s*\]+", line)
            if header is not None:
                current = header[1].replace('"', "").replace("'", "")
                if f"{table}.{key}".strip(".") == current:
                    return number
            elif current == table and wanted.match(line):
                return number
        return 0


def _names(profiles: Mapping[str, Profile]) -> str:
    if not profiles:
        return "the file has none"
    return f"there are {', '.join(profiles)}"


def find(name: str | None) -> Profile | None:
    """Find the profile of this name, or the one that the file chooses.  Raises BadConfiguration."""
    path = configuration_path()
    found = load(path)
    if found is None:
        if name is not None:
            raise BadConfiguration(f"there is no profile {name!r}: there is no file {path}")
        return None
    wanted = name or found.chosen
    if wanted is None:
        return None
    if wanted not in found.profiles:
        raise BadConfiguration(f"{path} has no profile {wanted!r}; {_names(found.profiles)}")
    return found.profiles[wanted]


# --- For commands


def use_profile(context: click.Context, parameter: click.Parameter, name: str | None) -> None:
    """Make the profile's values the defaults of the command's options."""
    try:
        profile = find(name or None)
    except BadConfiguration as error:
        raise click.UsageError(str(error)) from None
    if profile is None:
        return
    defaults = dict(context.default_map or {})
    if profile.bootstrap is not None:
        defaults["bootstrap"] = profile.bootstrap
    if profile.timeout is not None:
        defaults["timeout"] = profile.timeout
    context.default_map = defaults
    context.meta[_META_KEY] = profile.client


def settings_of_profile(owner: str) -> dict[str, str | int | bool]:
    """Return the profile's settings for clients of this kind and for all clients."""
    context = click.get_current_context(silent=True)
    found = context.meta.get(_META_KEY) if context is not None else None
    if not found:
        return {}
    from tarry.client.settings import CLIENT_SETTINGS, COMMON

    return {
        key: value for key, value in found.items() if CLIENT_SETTINGS[key].scope in (owner, COMMON)
    }
