"""The fixtures, in projects of their own."""

from __future__ import annotations

import sys

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


def test_tests_that_share_a_broker_have_topics_of_their_own(project: Project) -> None:
    project.files.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("number", [1, 2])
        def test_orders(tarry_session, number):
            topic = tarry_session.topic("orders", partitions=number)
            tarry_session.send("orders", b"one")
            tarry_session.fail("Metadata", code=29, times=None)
            tarry_session.heal()

            assert topic == f"test_orders-{number}--{number}-orders"
            assert len(tarry_session.records(topic)) == 1
            assert len(tarry_session.admin.list_topics()) == number
        """
    )

    project.run().assert_outcomes(passed=2)


def test_a_setting_that_is_none_is_an_error_of_the_test(project: Project) -> None:
    project.files.makepyfile(
        """
        import pytest

        @pytest.mark.tarry(**{"num.partition": "3"})
        def test_it(tarry):
            pass
        """
    )

    result = project.run()

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*unknown setting num.partition; did you mean num.partitions?*"])


def test_a_broker_is_imported_only_when_a_test_asks_for_one(project: Project) -> None:
    loaded = (
        "import sys, tarry.testing.plugin; "
        "print([name for name in sys.modules if name.startswith('tarry.') "
        "and name not in ('tarry._form', 'tarry.testing', 'tarry.testing.plugin')])"
    )

    result = project.files.run(sys.executable, "-c", loaded)

    result.stdout.fnmatch_lines(["[[][]]"])
