"""The fixtures, in projects of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


class Project:
    """Project with tests of its own, run in this process."""

    def __init__(self, pytester: pytest.Pytester, *, is_installed: bool) -> None:
        self.files = pytester
        # An environment that is older than the plugin does not know its entry point.
        self._words = () if is_installed else ("-p", "tarry.testing.plugin")

    def run(self, *words: str) -> pytest.RunResult:
        return self.files.runpytest_inprocess("-p", "no:cacheprovider", *self._words, *words)


@pytest.fixture
def project(pytester: pytest.Pytester, pytestconfig: pytest.Config) -> Project:
    return Project(pytester, is_installed=pytestconfig.pluginmanager.has_plugin("tarry"))


def test_every_test_has_a_broker_of_its_own_and_its_settings(project: Project) -> None:
    project.files.makeini(
        "[pytest]\ntarry_settings =\n    num.partitions=2\n    log.retention.ms=5000\n"
    )
    project.files.makepyfile(
        """
        import pytest

        def count(tarry):
            tarry.send("orders", b"one")
            return len(tarry.admin.find_topics(["orders"])["orders"].partitions)

        def test_first(tarry):
            assert count(tarry) == 2
            assert len(tarry.records("orders")) == 1

        @pytest.mark.tarry(**{"num.partitions": "3"})
        def test_second(tarry):
            assert count(tarry) == 3
            assert len(tarry.records("orders")) == 1
        """
    )

    project.run().assert_outcomes(passed=2)
