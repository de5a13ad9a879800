"""Where the settings of `tarry serve` come from, and what its first line says."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import tarry
from tarry.base.errors import InvalidSetting
from tarry.base.settings import Settings
from tarry.cli.serve import QUICK_START, announce, load_settings


def test_later_sources_win(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=1\nlog.dirs=/file\nnode.id=1\n# é\n", encoding="utf-8")
    environment = {"TARRY_NUM_PARTITIONS": "2", "TARRY_LOG_DIRS": "/environment", "HOME": "/root"}

    settings = load_settings(str(path), environment, ["num.partitions=3"])

    assert settings.num_partitions == 3
    assert settings.log_directory == "/environment"
    assert settings.node_id == 1


def test_without_any_source_the_defaults_count() -> None:
    settings = load_settings(None, {"TARRY_PURE": "1", "TARRY_CONFIG": "x"}, [])

    assert settings.log_directory == "./tarry-data"


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match=r"missing cannot be read: No such file"):
        load_settings(str(tmp_path / "missing"), {}, [])
    (tmp_path / "latin").write_bytes(b"a=\xe9")
    with pytest.raises(InvalidSetting, match="no text in UTF-8"):
        load_settings(str(tmp_path / "latin"), {}, [])


def test_an_unknown_name_in_the_environment_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"unknown setting log\.dir\.s"):
        load_settings(None, {"TARRY_LOG_DIR_S": "/x"}, [])


@pytest.mark.parametrize(
    ("line", "environment", "words", "told"),
    [
        ("", {"TARRY_NUM_PARTITIONS": "x"}, [], "(environment TARRY_NUM_PARTITIONS)"),
        ("", {"TARRY_NUM_PARTITION": "1"}, [], "(environment TARRY_NUM_PARTITION)"),
        ("num.partitions=x", {}, [], "line 2)"),
        ("num.partitions=x", {}, ["num.partitions=y"], "whole number (--set)"),
        ("broker.id=-2", {}, [], "line 2)"),
        ("", {}, ["log.dirs=/a,/b"], "(--set)"),
        ("", {"TARRY_LISTENERS": "SSL://127.0.0.1:1"}, [], "(environment TARRY_LISTENERS)"),
        (
            "advertised.listeners=B://x:1",
            {},
            ["listeners=PLAINTEXT://127.0.0.1:1"],
            "(listeners: --set, advertised.listeners: file ",
        ),
    ],
)
def test_a_sentence_about_a_wrong_setting_names_its_place(
    line: str, environment: dict[str, str], words: list[str], told: str, tmp_path: Path
) -> None:
    path = tmp_path / "server.properties"
    path.write_text(f"# settings\n{line}\n", encoding="utf-8")

    with pytest.raises(InvalidSetting) as raised:
        load_settings(str(path), environment, words)

    assert told in str(raised.value)


def test_the_first_line_names_the_address_and_every_command_has_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    announce(Settings(), with_hints=True)
    announce(Settings({"listeners": "PLAINTEXT://[::1]:9093"}), with_hints=True)

    assert capsys.readouterr().out.splitlines() == [
        "Tarry is ready at 127.0.0.1:9092; try tarry produce and tarry consume in another "
        "terminal:",
        "  echo hello | tarry produce greetings",
        "  tarry consume greetings",
        "or let a record appear in ten seconds:",
        "  tarry topics create later -c delay.enable=true -c delay.source=timestamp",
        "  echo hello | tarry produce later --timestamp +10s",
        "  tarry consume later --follow",
        "Tarry is ready at [::1]:9093; try tarry produce and tarry consume in another terminal:",
        "  echo hello | tarry produce -b [::1]:9093 greetings",
        "  tarry consume -b [::1]:9093 greetings",
        "or let a record appear in ten seconds:",
        "  tarry topics create -b [::1]:9093 later -c delay.enable=true -c delay.source=timestamp",
        "  echo hello | tarry produce -b [::1]:9093 later --timestamp +10s",
        "  tarry consume -b [::1]:9093 later --follow",
    ]


def test_without_hints_only_the_address_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    announce(Settings(), with_hints=False)

    assert capsys.readouterr().out == "Tarry is ready at 127.0.0.1:9092\n"


@pytest.mark.interpreted
def test_the_interpreted_form_says_what_it_costs_unless_it_was_asked_for(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tarry, "FORM", "interpreted")
    monkeypatch.setattr(tarry, "FORM_REASON", "TARRY_PURE is set")
    announce(Settings(), with_hints=False)
    asked_for = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]

    monkeypatch.setattr(tarry, "FORM_REASON", "no hot module is compiled")
    announce(Settings(), with_hints=False)

    assert asked_for == []
    (line,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert "about four times the CPU of the compiled form (no hot module is compiled)" in line
    assert "make setup" in line
    assert "TARRY_COMPILE=1 pip install" in line


@pytest.mark.parametrize(
    ("environment", "words", "delay_ms"),
    [
        ({}, [], 0),
        ({"TARRY_GROUP_INITIAL_REBALANCE_DELAY_MS": "7"}, [], 7),
        ({}, ["group.initial.rebalance.delay.ms=8"], 8),
    ],
)
def test_a_quick_start_lets_groups_begin_at_once_unless_the_user_says_otherwise(
    environment: dict[str, str], words: list[str], delay_ms: int
) -> None:
    settings = load_settings(None, environment, words, QUICK_START)

    assert settings.group_initial_rebalance_delay_ms == delay_ms


def test_the_log_names_every_opened_listener_with_what_its_clients_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    settings = Settings(
        {
            "listeners": "INNER://127.0.0.1:0,OUTER://0.0.0.0:9095",
            "advertised.listeners": "OUTER://broker.example:19095",
            "listener.security.protocol.map": "INNER:PLAINTEXT,OUTER:PLAINTEXT",
        }
    )
    settings.open_listeners[0].bound(40_001)

    announce(settings, with_hints=False)

    assert caplog.messages[-1] == (
        "listening at INNER://127.0.0.1:40001; "
        "OUTER://0.0.0.0:9095 (advertised as broker.example:19095)"
    )
