"""The page about the plugin: each of its tests passes, as a reader would copy it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

PAGE = Path(__file__).resolve().parents[3] / "docs/how-to/test-without-docker.md"
FENCED = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.process
def test_the_tests_of_the_page_pass(pytester: pytest.Pytester, pytestconfig: pytest.Config) -> None:
    source = "\n\n".join(FENCED.findall(PAGE.read_text(encoding="utf-8")))
    pytester.makepyfile(test_page=source)
    is_installed = pytestconfig.pluginmanager.has_plugin("tarry")
    words = () if is_installed else ("-p", "tarry.testing.plugin")

    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-W", "error", *words)

    result.assert_outcomes(passed=source.count("\ndef test_"))
