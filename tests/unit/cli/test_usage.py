"""Wrong usage of the client's commands: refused before anything is connected to."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tarry.cli.configs import configs
from tarry.cli.consume import consume
from tarry.cli.describe import describe
from tarry.cli.groups import groups
from tarry.cli.perf import perf
from tarry.cli.produce import produce
from tarry.cli.running import client_arguments
from tarry.cli.topics import topics

NOWHERE = ["-b", "127.0.0.1:1", "-m", "0.2"]


@pytest.mark.parametrize(
    ("command", "arguments", "sentence"),
    [
        (consume, ["t", "-o", "middle"], "invalid offset"),
        (consume, ["t", "-f", "%y"], "invalid letter %y"),
        (consume, ["t", "-p", "x"], "invalid partition"),
        (consume, ["t", "--from", "noon"], "invalid time"),
        (consume, ["t", "--follow", "--exit"], "exclude each other"),
        (consume, ["t", "--json", "-f", "%s"], "exclude each other"),
        (consume, ["t", "-D", "\\q"], "unknown escape"),
        (consume, ["t", "-o", "5", "--from", "-1h"], "--offset and --from exclude each other"),
        (consume, ["t", "-o", "1..2", "--to", "-1h"], "exclude each other"),
        (consume, ["t", "-o", ".."], "invalid offset '..'"),
        (consume, ["t", "--json", "--csv"], "--json and --csv exclude each other"),
        (consume, ["t", "--json", "-K:"], "--key-delimiter and --json exclude each other"),
        (consume, ["t", "--only", "key", "--csv"], "--only and --csv exclude each other"),
        (consume, ["t", "--grep", "("], "invalid pattern '('"),
        (consume, ["^("], "invalid pattern '^('"),
        (consume, ["t", "--key-format", "int33"], "unknown form 'int33'"),
        (consume, ["t", "-f", "%T{iso"], "%T{ needs"),
        (consume, ["t", "-c", "many"], "invalid number 'many'"),
        (consume, ["t", "-c", "0"], "at least 1"),
        (consume, ["t", "-m", "0"], "invalid time"),
        (consume, ["t", "-c", "9" * 5000], "invalid number"),
        (consume, ["t", "-G", ""], "name the group"),
        (perf, ["produce", "t", "-s", "99GB"], "at most 104857600"),
        (consume, ["t", "-p", "0-99999999999"], "invalid partition"),
        (consume, ["t", "--from", "99999999999999999999"], "invalid time"),
        (produce, ["t", "-p", "99999999999"], "2147483647"),
        (produce, ["t", "--timestamp", "99999999999999999999"], "invalid time"),
        (topics, ["create", "t", "-p", "99999999999"], "at most 2147483647"),
        (topics, ["create", "t", "-r", "99999"], "at most 32767"),
        (topics, ["add-partitions", "t", "-p", "99999999999"], "at most 2147483647"),
        (topics, ["offsets", "t", "--at", "99999999999999999999"], "invalid place"),
        (produce, ["t", "-m", "-1"], "invalid time"),
        (describe, ["-m", "nan"], "invalid time"),
        (topics, ["list", "-m", "soon"], "invalid time"),
        (consume, [], "Missing argument"),
        (produce, ["t", "-z", "rar"], "is not one of"),
        (produce, ["t", "-H", "novalue"], "write it as KEY=VALUE"),
        (produce, ["t", "-D", ""], "delimiter is empty"),
        (produce, ["t", "-K", ":", "--csv"], "--csv and --key-delimiter exclude each other"),
        (produce, ["t", "-f", "%k%s"], "put text between %k and %s"),
        (produce, ["t", "-f", "%t"], "takes no key or value"),
        (produce, ["t", "-f", "%x"], "invalid letter %x"),
        (produce, ["t", "-f", "%s %s"], "twice"),
        (produce, ["t", "--value-format", "hexx"], "unknown form 'hexx'"),
        (produce, ["t", "--key-column", "id"], "--key-column needs --csv"),
        (produce, ["t", "--keep-place"], "--keep-place needs --json or --csv"),
        (produce, ["t", "--tee", "--json"], "--tee is for lines"),
        (produce, ["t", "--json", "-D", ","], "--delimiter and --json exclude each other"),
        (produce, ["t", "--timestamp", "noon"], "invalid time 'noon'"),
        (produce, ["t", "/nowhere/at/all"], "nothing was sent"),
        (produce, ["t", "/"], "Is a directory; nothing was sent"),
        (produce, ["t", "--whole", "--json"], "exclude each other"),
        (produce, ["t", "-X", "linger.mss=5"], "did you mean linger.ms"),
        (topics, ["create", "t", "--assignment", "a"], "as ID:ID"),
        (topics, ["create", "t", "--assignment", "1", "-p", "2"], "says partitions"),
        (topics, ["create", "t", "-c", "x"], "write it as KEY=VALUE"),
        (topics, ["creat", "t"], "did you mean 'create'?"),
        (topics, ["delete", "t"], "Add --yes"),
        (topics, ["alter", "t"], "name what to change"),
        (topics, ["alter", "t", "-c", "x"], "write it as KEY=VALUE"),
        (topics, ["alter", "t", "-c", "x=1", "--unset", "x"], "x is changed twice"),
        (topics, ["add-partitions", "t"], "Missing option"),
        (topics, ["add-partitions", "t", "-p", "0"], "it must be at least 1"),
        (topics, ["add-partitions", "t", "-p", "2", "--assignment", "a"], "as ID:ID"),
        (topics, ["delete-records", "t"], "Missing option"),
        (topics, ["delete-records", "t", "--before", "noon"], "invalid offset"),
        (topics, ["delete-records", "t", "--before", "end", "-p", "x"], "invalid partition"),
        (configs, ["get"], "name whose settings"),
        (configs, ["get", "--topic", "t", "--broker", "1"], "name whose settings"),
        (configs, ["set", "--topic", "t", "+=1"], "write it as KEY=VALUE"),
        (configs, ["set", "--topic", "t"], "Missing argument"),
        (configs, ["unset", "--brokers"], "Missing argument"),
        (configs, ["ste", "--brokers"], "did you mean 'set'?"),
        (
            groups,
            ["list", "--state", "Asleep"],
            "invalid state 'Asleep': a group has one of Empty,",
        ),
        (groups, ["list", "--type", "new"], "invalid type 'new': a group has one of classic,"),
        (groups, ["describe"], "name groups, or add --all"),
        (groups, ["describe", "g", "--all"], "name groups, or add --all"),
        (groups, ["describe", "g", "--state", "--members"], "exclude each other"),
        (groups, ["describe", "g", "--watch", "0"], "invalid time"),
        (groups, ["why"], "Missing argument"),
        (groups, ["why", "g", "-n", "0"], "not in the range"),
        (groups, ["reset-offsets", "g", "--to-latest"], "name topics with --topic"),
        (groups, ["reset-offsets", "g", "--topic", "t"], "name where to, with one of"),
        (groups, ["reset-offsets", "", "--topic", "t", "--to-latest"], "its name is empty"),
        (
            groups,
            ["reset-offsets", "g", "--topic", "t", "--to-latest", "--to-earliest"],
            "name where to, with one of",
        ),
        (groups, ["reset-offsets", "g", "--all-topics", "--to-time", "noon"], "invalid time"),
        (groups, ["reset-offsets", "g", "--topic", ":1", "--to-latest"], "invalid topic"),
        (groups, ["reset-offsets", "g", "--topic", "t:x", "--to-latest"], "invalid partition"),
        (groups, ["reset-offsets", "g", "--topic", "t", "--to-offset", "-1"], "not in the range"),
        (groups, ["delete", "g"], "Add --yes"),
        (groups, ["delete-offsets", "g", "--topic", "t"], "Add --yes"),
        (groups, ["delete-offsets", "g", "-y"], "Missing option"),
        (describe, ["-X", "request.timeout.ms=soon"], "must be a whole number"),
        (describe, ["-b", "::1"], "write the address"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_code_2(
    command: object, arguments: list[str], sentence: str
) -> None:
    result = CliRunner().invoke(command, arguments)  # type: ignore[arg-type]

    assert result.exit_code == 2
    assert sentence in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (consume, ["t"]),
        (produce, ["t"]),
        (describe, []),
        (topics, ["list"]),
        (topics, ["create", "t"]),
        (topics, ["describe", "t"]),
        (topics, ["delete", "t", "-y"]),
        (topics, ["alter", "t", "-c", "a=1"]),
        (topics, ["add-partitions", "t", "-p", "3"]),
        (topics, ["delete-records", "t", "--before", "end", "-y"]),
        (configs, ["get", "--topic", "t"]),
        (configs, ["set", "--brokers", "a=1"]),
        (configs, ["unset", "--broker", "1", "a"]),
        (groups, ["list"]),
        (groups, ["describe", "g"]),
        (groups, ["why", "g"]),
        (groups, ["reset-offsets", "g", "--topic", "t", "--to-latest"]),
        (groups, ["delete", "g", "-y"]),
        (groups, ["delete-offsets", "g", "--topic", "t", "-y"]),
    ],
)
def test_a_cluster_that_is_not_there_is_one_sentence_and_exit_code_1(
    command: object, arguments: list[str]
) -> None:
    result = CliRunner().invoke(command, [*arguments, *NOWHERE])  # type: ignore[arg-type]

    assert result.exit_code == 1
    assert "127.0.0.1:1" in result.stderr
    # A machine that is slow enough also hears what the command waits for.
    lines = result.stderr.strip().splitlines()
    assert len([line for line in lines if not line.startswith("tarry: waiting: ")]) == 1


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        (consume, []),
        (produce, []),
        (describe, []),
        (topics, []),
        (topics, ["list"]),
        (topics, ["create"]),
        (topics, ["describe"]),
        (topics, ["delete"]),
    ],
)
def test_help_teaches_by_examples(command: object, arguments: list[str]) -> None:
    result = CliRunner().invoke(command, [*arguments, "--help"])  # type: ignore[arg-type]

    assert result.exit_code == 0
    assert "Examples:" in result.output
    assert "tarry " in result.output


def test_settings_of_the_user_win_over_those_of_the_command() -> None:
    settings = client_arguments("h:1", ["acks=1"], acks="all", batch_size=5)

    assert settings == {"acks": "1", "batch.size": 5, "bootstrap.servers": "h:1"}
