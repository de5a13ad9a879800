"""Skips that fail, in projects of their own."""

from __future__ import annotations

import pytest
from tests.support.no_skips import NoSkips

pytest_plugins = ["pytester"]

SKIPS = """
import pytest

def test_that_lacks_something():
    pytest.skip("kcat is not installed")

@pytest.mark.skipif(True, reason="there is no C compiler")
def test_that_lacks_something_at_once():
    pass

@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_that_may_be_skipped(shell):
    pytest.skip(f"{shell} is not installed")

@pytest.mark.xfail(strict=True)
def test_that_fails_as_it_should():
    assert False

def test_that_passes():
    pass
"""


def run(pytester: pytest.Pytester, text: str, *plugins: object) -> pytest.RunResult:
    pytester.makepyfile(text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", plugins=plugins)


def test_a_skip_is_a_failure_unless_a_shell_is_missing(pytester: pytest.Pytester) -> None:
    result = run(pytester, SKIPS, NoSkips())

    # A mark skips before the test begins, which pytest calls an error.
    result.assert_outcomes(failed=1, errors=1, skipped=2, xfailed=1, passed=1)
    result.stdout.fnmatch_lines(["*may be (TARRY_NO_SKIPS): kcat is not installed"])


def test_a_module_that_is_skipped_is_a_failure(pytester: pytest.Pytester) -> None:
    result = run(pytester, "import pytest\npytest.importorskip('no_such_module')\n", NoSkips())

    result.assert_outcomes(errors=1)


def test_without_the_plugin_skips_are_skips(pytester: pytest.Pytester) -> None:
    run(pytester, SKIPS).assert_outcomes(skipped=4, xfailed=1, passed=1)
