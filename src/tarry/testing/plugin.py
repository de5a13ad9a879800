"""The pytest plugin: fixtures that are brokers.

Nothing heavy is imported before a test asks for a fixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from tarry.testing.process import TarryProcess
    from tarry.testing.threaded import Tarry, TarrySession
    from tarry.testing.world import TarryWorld

MARK: Final = "tarry"
INI: Final = "tarry_settings"

# Tests that have used the session's broker so far.
TESTS: Final = pytest.StashKey[int]()


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


@pytest.fixture(scope="session")
def _tarry_of_session(request: pytest.FixtureRequest) -> Iterator[Tarry]:
    from tarry.testing.threaded import Tarry

    with Tarry(settings_of_project(request.config)) as broker:
        yield broker


@pytest.fixture
def tarry_session(
    _tarry_of_session: Tarry, request: pytest.FixtureRequest
) -> Iterator[TarrySession]:
    """Broker of all tests of this process that ask for it; topics carry the test's name."""
    # Tests in different files may have the same name: a number tells them apart.
    number = request.config.stash.get(TESTS, 0) + 1
    request.config.stash[TESTS] = number
    with _tarry_of_session.for_test(f"{request.node.name}-{number}") as broker:
        yield broker


@pytest.fixture
def tarry_process(request: pytest.FixtureRequest) -> Iterator[TarryProcess]:
    """Broker of this test in a process of its own, with `kill()`, `start()` and `pause()`."""
    from tarry.testing.process import TarryProcess

    with TarryProcess(settings_of(request)) as broker:
        yield broker


@pytest.fixture
def tarry_world(request: pytest.FixtureRequest) -> Iterator[TarryWorld]:
    """Broker core of this test with client cores around it in simulated time, without sockets."""
    from tarry.testing.world import TarryWorld

    world = TarryWorld(settings_of(request))
    yield world
    world.close()


def settings_of_project(config: pytest.Config) -> dict[str, object]:
    """Return the settings of the project's pytest configuration."""
    settings: dict[str, object] = {}
    for line in config.getini(INI):
        key, equals, value = line.partition("=")
        if not equals:
            raise pytest.UsageError(f"{INI}: write key=value, not {line!r}")
        settings[key.strip()] = value.strip()
    return settings


def settings_of(request: pytest.FixtureRequest) -> dict[str, object]:
    """Return the project's settings, overridden by those of the test's marks."""
    settings = settings_of_project(request.config)
    # Apply the mark that is closest to the test last: it overrides the others.
    for mark in reversed(list(request.node.iter_markers(MARK))):
        settings.update(mark.kwargs)
    return settings
