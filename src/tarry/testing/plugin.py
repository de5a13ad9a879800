"""The pytest plugin: fixtures that are brokers.

Nothing heavy is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tarry.testing.threaded import Tarry

MARK: Final = "tarry"
INI: Final = "tarry_settings"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take settings of all brokers from the project's pytest settings."""
    parser.addini(
        INI, "settings of the brokers of tarry's fixtures, one key=value a line", type="linelist"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers",
        "tarry(**settings): settings of the broker of this test, by Kafka's keys: "
        '@pytest.mark.tarry(**{"num.partitions": "3"})',
    )


@pytest.fixture
def tarry(request: pytest.FixtureRequest) -> Iterator[Tarry]:
    """Broker of this test alone, in a thread; any Kafka client may connect to
    `tarry.bootstrap`."""
    from tarry.testing.threaded import Tarry

    with Tarry(settings_of(request)) as broker:
        yield broker


def settings_of(request: pytest.FixtureRequest) -> dict[str, object]:
    """Return the settings of the project, and over them those of the test's marks."""
    settings: dict[str, object] = {}
    for line in request.config.getini(INI):
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{INI}: write key=value, not {line!r}")
        settings[key.strip()] = value.strip()
    # The mark closest to the test is the last one told.
    for mark in reversed(list(request.node.iter_markers(MARK))):
        settings.update(mark.kwargs)
    return settings
