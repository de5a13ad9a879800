"""`tarry spark`: an archive by the command line, in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tarry.cli.running import Cluster, cluster_options
from tarry.cli.spark.commands import spark
from tarry.cli.spark.session import LOGGING, java_options, settings_of
from tarry.testing import Tarry

pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def broker() -> Iterator[Tarry]:
    with Tarry() as tarry:
        tarry.topic("orders")
        tarry.send("orders", b"a", b"b", b"c")
        yield tarry


def run(broker: Tarry, *words: str) -> Result:
    return CliRunner().invoke(spark, [*words, "-b", broker.bootstrap])


def archive(broker: Tarry, path: Path, *words: str) -> Result:
    return run(broker, "archive", "orders", "--to", str(path), "--local", *words)


def test_an_archive_is_made_and_recounted(broker: Tarry, tmp_path: Path) -> None:
    made = archive(broker, tmp_path)
    again = archive(broker, tmp_path)
    verified = run(broker, "verify", str(tmp_path))
    told = json.loads(run(broker, "verify", str(tmp_path), "--json").stdout)

    assert (made.exit_code, again.exit_code, verified.exit_code) == (0, 0, 0)
    assert made.stdout.startswith("3 records in 1 file")
    assert again.stdout == "nothing new to archive\n"
    assert verified.stdout.startswith("whole  1 round, 1 file")
    assert (told["is_whole"], told["rows"], told["compared"]) == (True, 3, 3)


def test_what_is_not_whole_fails_with_a_sentence(broker: Tarry, tmp_path: Path) -> None:
    archive(broker, tmp_path)
    for file in tmp_path.glob("topic=*/**/*.parquet"):
        file.unlink()

    verified = run(broker, "verify", str(tmp_path), "--offline")

    assert verified.exit_code == 1
    assert "is missing" in verified.stderr
    assert "not whole" in verified.stdout


PIPELINE = """\
name = "orders"
checkpoint = "checkpoint"
source = { topics = ["orders"], bootstrap = "127.0.0.1:1" }
archive = { path = "lake" }
"""


def test_the_archive_of_a_pipeline_is_recounted_beside_the_cluster_that_is_named(
    broker: Tarry, tmp_path: Path
) -> None:
    (tmp_path / "orders.toml").write_text(PIPELINE)
    archive(broker, tmp_path / "lake")

    told = run(broker, "verify", str(tmp_path / "orders.toml"), "--json")

    assert json.loads(told.stdout)["compared"] == 3


def test_settings_of_a_job_are_those_of_the_command_line() -> None:
    @click.command()
    @cluster_options
    def tell(cluster: Cluster) -> None:
        click.echo(json.dumps(settings_of(cluster)))

    def told(*words: str) -> dict[str, str]:
        found: dict[str, str] = json.loads(CliRunner().invoke(tell, list(words)).stdout)
        return found

    assert told("-b", "one:1") == {"bootstrap.servers": "one:1"}
    assert told("-b", "one:1", "-X", "client.id=a") == {
        "bootstrap.servers": "one:1",
        "client.id": "a",
    }


def test_a_topic_that_is_not_there_is_told(broker: Tarry, tmp_path: Path) -> None:
    result = run(broker, "archive", "nowhere", "--to", str(tmp_path), "--local")

    assert result.exit_code == 1
    assert "the broker has no topic nowhere" in result.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("archive", "orders", "--local", "--to", "s3://lake/orders"),
        ("compact", "--local", "s3a://lake/orders"),
        ("verify", "gs://lake"),
        ("replay", "hdfs://lake", "--local", "--topic", "orders", "--to", "again"),
        ("replay", "lake", "--local", "--topic", "a", "--to", "b", "--state", "s3://lake"),
        ("waits", "--archive", "file:///lake"),
    ],
)
def test_a_url_is_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)

    told = CliRunner().invoke(spark, list(words))

    assert told.exit_code == 2
    assert "is no directory of a file system" in told.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_topic_is_wrong_usage(broker: Tarry, tmp_path: Path) -> None:
    result = run(broker, "archive", "--to", str(tmp_path), "--local")

    assert result.exit_code == 2
    assert "name topics, or give a --pattern" in result.stderr


def replay(broker: Tarry, path: Path, *words: str) -> Result:
    return run(broker, "replay", str(path), "--topic", "orders", "--to", "again", "--local", *words)


def test_an_archive_is_replayed_once(broker: Tarry, tmp_path: Path) -> None:
    broker.topic("again")
    archive(broker, tmp_path)

    done = replay(broker, tmp_path, "--round-records", "2")
    again = replay(broker, tmp_path)
    told = json.loads(replay(broker, tmp_path, "--from", "0=1", "--json").stdout)

    assert (done.exit_code, done.stdout) == (0, "3 records in again\n")
    assert done.stderr == "round 1: 2 records, 66 %\n"
    assert again.stdout.startswith("this replay is finished: 3 records in again.")
    assert (told["records"], told["is_finished"], told["was_finished"]) == (2, True, False)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--from", "-2h"), "write the time itself"),
        (("--from", "2026-03-29T02:30"), "write the time with its zone, such as 2026-11-22T08:00Z"),
        (("--until", "2026-03-29"), "write the time with its zone"),
        (("--from", "soon"), "invalid time 'soon'"),
        (("--until", "0=x"), "write PARTITION=OFFSET"),
    ],
)
def test_bounds_that_name_no_place_are_wrong_usage(
    broker: Tarry, tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    result = replay(broker, tmp_path, *words)

    assert result.exit_code == 2
    assert sentence in result.stderr


def test_an_archive_is_compacted(broker: Tarry, tmp_path: Path) -> None:
    broker.topic("small")
    for value in (b"a", b"b"):
        broker.send("small", value)
        run(broker, "archive", "small", "--to", str(tmp_path), "--local", "--by", "none")
    words = ["compact", str(tmp_path), "--local"]

    done = CliRunner().invoke(spark, words)
    again = CliRunner().invoke(spark, words)
    told = CliRunner().invoke(spark, [*words, "--keep-replaced", "0", "--json"])
    wrong = CliRunner().invoke(spark, [*words, "--keep-replaced", "-1s"])

    assert done.exit_code == 0
    assert done.stdout.startswith("2 files of ")
    assert done.stderr.startswith("directory 1: 2 files of ")
    assert again.stdout == "nothing to merge\n"
    assert json.loads(told.stdout)["directories"] == 0
    assert (wrong.exit_code, "invalid time '-1s'" in wrong.stderr) == (2, True)
    assert run(broker, "verify", str(tmp_path)).stdout.startswith("whole  2 rounds, 1 file")


@pytest.mark.parametrize("words", ["archive orders --to lake --local", "waits", "lag"])
def test_a_broker_that_is_away_is_told_after_the_timeout(words: str) -> None:
    result = CliRunner().invoke(spark, [*words.split(), "-b", "127.0.0.1:1", "-m", "100ms"])

    assert result.exit_code == 1
    # The program itself prints what ended a command.  On a busy machine the time is over before the
    # first refusal comes.
    told = f"{result.stderr}{result.exception}"
    assert "cannot connect to 127.0.0.1:1" in told or "not answered by 127.0.0.1:1" in told


def test_what_is_not_installed_is_told_before_spark_starts(
    broker: Tarry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    result = run(broker, "archive", "orders", "--to", str(tmp_path / "lake"))

    assert result.exit_code == 1
    assert "cannot be run (No such file or directory): set JAVA_HOME to" in result.stderr
    assert result.stderr.endswith(", or use --local\n")


def test_the_start_of_java_is_quiet_unless_somebody_configured_spark() -> None:
    (option,) = java_options({}).values()

    assert option == f"-Dlog4j2.configurationFile=file:{LOGGING}"
    assert LOGGING.is_file()
    assert java_options({"SPARK_HOME": "/opt/spark"}) == {}
    assert java_options({"SPARK_CONF_DIR": "/etc/spark"}) == {}
