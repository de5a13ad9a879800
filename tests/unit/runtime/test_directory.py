"""The log directory: one broker's, of a format that it reads."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from tarry.runtime.descriptors import DESCRIPTORS_MIN, connections_max, raise_descriptor_limit
from tarry.runtime.directory import FORMAT, HeldDirectory
from tarry.runtime.refusal import StartRefused


def test_a_missing_directory_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "data"

    directory = HeldDirectory(str(path))

    assert directory.path == str(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.iterdir()} == {0o600}
    directory.close()


def test_a_second_broker_is_refused_in_a_sentence_with_the_first_ones_process(
    tmp_path: Path,
) -> None:
    first = HeldDirectory(str(tmp_path))

    with pytest.raises(StartRefused) as refusal:
        HeldDirectory(str(tmp_path))

    assert f"another broker (process {os.getpid()}) uses" in str(refusal.value)
    first.close()
    HeldDirectory(str(tmp_path)).close()


def test_a_relative_path_is_fixed_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    directory = HeldDirectory("./tarry-data")

    assert directory.path == str(tmp_path / "tarry-data")
    directory.close()


def test_data_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    HeldDirectory(str(tmp_path)).close()
    assert (tmp_path / ".tarry_format").read_text() == f"{FORMAT}\n"
    (tmp_path / ".tarry_format").write_text(f"{FORMAT + 1}\n")

    for _ in range(2):
        with pytest.raises(StartRefused, match="written by a newer Tarry"):
            HeldDirectory(str(tmp_path))


def test_data_of_an_older_format_gets_the_present_one(tmp_path: Path) -> None:
    (tmp_path / ".tarry_format").write_text(f"{FORMAT - 1}\n")

    HeldDirectory(str(tmp_path)).close()

    assert (tmp_path / ".tarry_format").read_text() == f"{FORMAT}\n"


def test_a_format_that_is_no_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".tarry_format").write_bytes(b"\xff\xfe?")

    with pytest.raises(StartRefused, match="holds no number"):
        HeldDirectory(str(tmp_path))


def test_a_directory_of_apache_kafka_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=1\n")

    with pytest.raises(StartRefused, match="holds the data of Apache Kafka"):
        HeldDirectory(str(tmp_path))

    assert not (tmp_path / ".tarry_format").exists()


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")

    with pytest.raises(StartRefused, match="is a file"):
        HeldDirectory(str(tmp_path / "data"))
    with pytest.raises(StartRefused, match="cannot be made: Not a directory"):
        HeldDirectory(str(tmp_path / "data" / "below"))


def test_a_directory_that_may_not_be_written_is_refused() -> None:
    if not os.path.isdir("/proc/self/net"):
        pytest.skip("no directory here that not even root may write")

    with pytest.raises(StartRefused, match=r"write log\.dirs=<a directory that may be written>"):
        HeldDirectory("/proc/self/net")


def test_the_soft_limit_of_descriptors_is_raised_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS_MIN + 1, hard))
    try:
        assert raise_descriptor_limit() >= min(hard, 10_240)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_connections_leave_descriptors_for_files() -> None:
    assert connections_max(DESCRIPTORS_MIN) > 0
    assert connections_max(20_000) > 10_000
    assert 20_000 - connections_max(20_000) > 1_000
