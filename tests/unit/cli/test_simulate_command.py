"""`tarry simulate`: what it reports of its seeds."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tarry.cli import simulate as command
from tarry.simulation.run import SETTINGS, WORKLOADS


@pytest.mark.parametrize(
    ("seeds", "failing", "words"),
    [
        ("7", [], "1 seed, 0 failures, "),
        ("1..3", [2], "3 seeds, 1 failure, "),
        ("1..3", [1, 2], "3 seeds, 2 failures, "),
    ],
)
def test_the_report_counts_seeds_and_failures_in_words_that_fit(
    monkeypatch: pytest.MonkeyPatch, seeds: str, failing: list[int], words: str
) -> None:
    monkeypatch.setattr(
        command,
        "_run_one",
        lambda workload, seed: (seed, "lost a record" if seed in failing else "", {}),
    )

    result = CliRunner().invoke(command.simulate, ["--seeds", seeds])

    assert words in result.output
    assert result.exit_code == (1 if failing else 0)


def test_a_failure_is_replayed_with_the_workload_that_it_was_found_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "_run_one", lambda workload, seed: (seed, f"{workload} fail", {}))

    result = CliRunner().invoke(command.simulate, ["--seeds", "7", "--workload", "groups"])

    assert "seed 7: groups fail" in result.output
    assert "tarry simulate --workload groups --replay SEED" in result.output


def test_faults_are_counted_over_all_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        command, "_run_one", lambda workload, seed: (seed, "", {"power": seed, "kill": 1})
    )

    result = CliRunner().invoke(command.simulate, ["--seeds", "1..3"])

    assert "faults: kill 3, power 6\n" in result.output


def test_every_workload_of_the_command_can_be_played() -> None:
    assert (*WORKLOADS, *SETTINGS) == command.WORKLOADS
