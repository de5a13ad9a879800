"""Profiles: where the file is, what it may say, and who wins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tarry.cli.main import tarry
from tarry.cli.profiles import BadConfiguration, configuration_path, load
from tarry.cli.running import (
    PRODUCER,
    bootstrap_option,
    client_arguments,
    settings_option,
    timeout_option,
)

TEXT = """
profile = "local"

[profiles.local]
bootstrap-server = "127.0.0.1:9999"

[profiles.far]
bootstrap-server = "far:1,far:2"
timeout = "2m"

[profiles.far.client]
"request.timeout.ms" = "9s"
"linger.ms" = 7
"""


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TARRY_PROFILE", "TARRY_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "config.toml"
    made.write_text(TEXT)
    monkeypatch.setenv("TARRY_PROFILES", str(made))
    return made


@click.command()
@bootstrap_option
@settings_option
@timeout_option
def shown(*, bootstrap: str, client_settings: tuple[str, ...], timeout: float) -> None:
    """Print what the command gets."""
    consumers = client_arguments(bootstrap, client_settings)
    producers = client_arguments(bootstrap, client_settings, owner=PRODUCER, linger_ms=1)
    click.echo(f"{bootstrap} {timeout:g} {consumers.get('request.timeout.ms')}")
    click.echo(f"linger {producers['linger.ms']} {'linger.ms' in consumers}")


def run(*arguments: str, **environment: str) -> list[str]:
    result = CliRunner(env=environment).invoke(shown, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_the_file_is_where_the_environment_says() -> None:
    assert configuration_path({"TARRY_PROFILES": "/a/b"}) == Path("/a/b")
    assert configuration_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/tarry/config.toml")
    assert configuration_path({"HOME": "/h"}) == Path("/h/.config/tarry/config.toml")
    relative = {"XDG_CONFIG_HOME": "x", "HOME": "/h"}
    assert configuration_path(relative) == Path("/h/.config/tarry/config.toml")


def test_without_a_file_nothing_changes(tmp_path: Path) -> None:
    assert load(tmp_path / "none.toml") is None
    environment = {"TARRY_PROFILES": str(tmp_path / "none.toml")}
    assert run(**environment)[0] == "127.0.0.1:9092 10 None"


def test_the_command_line_wins_over_the_environment_and_that_over_the_profile(file: Path) -> None:
    far = "far:1,far:2 120 9s"

    assert run()[0] == "127.0.0.1:9999 10 None"
    assert run("--profile", "far")[0] == far
    assert run(TARRY_PROFILE="far")[0] == far
    assert run("--profile", "far", TARRY_PROFILE="local")[0] == far
    assert run(TARRY_PROFILE="far", TARRY_BOOTSTRAP_SERVERS="e:1")[0] == "e:1 120 9s"
    assert run("-b", "c:1", "-m", "5", "--profile", "far", TARRY_BOOTSTRAP_SERVERS="e:1")[0] == (
        "c:1 5 9s"
    )
    assert run("--profile", "far", "-X", "request.timeout.ms=1s")[0] == "far:1,far:2 120 1s"


def test_a_profile_may_hold_settings_of_other_kinds_of_clients(file: Path) -> None:
    assert run("--profile", "far")[1] == "linger 7 False"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("profile = 5\nx = = 5", "line 2: not valid TOML"),
        ("\nprofil = 'x'", "line 2: profil: unknown key"),
        ("profile = 'x'", "line 1: profile: there is no profile 'x'; the file has none"),
        ("profile = 5", "line 1: profile: has to be the name"),
        ("[profiles.a]\nbootstrap = 'h'", "line 2: bootstrap: unknown key; a profile has boots"),
        ("[profiles.a]\n\n'bootstrap-server' = 5", "line 3: bootstrap-server: has to be text"),
        ("[profiles.a]\ntimeout = true", "line 2: timeout: has to be seconds"),
        ("[profiles]\na = 5", r"line 2: a: write a table \[profiles.a\]"),
        ("profiles = 5", "line 1: profiles: write a table"),
        ("[profiles.a.client]\n'x.y' = 5", "line 2: x.y: unknown setting"),
        ("[profiles.a.client]\n'linger.mss' = 5", "did you mean 'linger.ms'"),
        ("[profiles.a.client]\nlinger.ms = 5", "line 2: linger: .* in quotes"),
        ("[profiles.a.client]\n'bootstrap.servers' = 'h'", "write bootstrap-server"),
    ],
)
def test_what_is_wrong_names_the_file_the_line_and_the_key(
    text: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)

    with pytest.raises(BadConfiguration, match=sentence) as refused:
        load(path)

    assert str(path) in str(refused.value)


def test_a_profile_that_is_not_there_is_wrong_usage(file: Path) -> None:
    result = CliRunner().invoke(shown, ["--profile", "nope"])

    assert result.exit_code == 2
    assert f"{file} has no profile 'nope'; there are local, far" in result.stderr


def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TARRY_PROFILES", str(tmp_path))

    result = CliRunner().invoke(shown, [])

    assert result.exit_code == 2
    assert f"cannot read {tmp_path}" in result.stderr


def test_profiles_are_listed_and_shown(file: Path) -> None:
    def ok(*arguments: str, **environment: str) -> Any:
        result = CliRunner(env=environment).invoke(tarry, ["profile", *arguments])
        assert result.exit_code == 0, result.output
        return result.stdout

    assert ok("list").splitlines()[1].split() == ["local", "used", "127.0.0.1:9999"]
    assert ok("list", TARRY_PROFILE="far").splitlines()[2].split()[:2] == ["far", "used"]
    assert "127.0.0.1:9999" in ok("show")
    assert ok("show", "far").splitlines()[-1].split() == ["client", "linger.ms", "7"]
    assert '"is_used": true' in ok("list", "--json")
