"""One broker for the tests of a module that archive a topic `orders`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tarry.client import Admin
from tarry.testing import Tarry


@pytest.fixture(scope="module")
def shared() -> Iterator[Tarry]:
    with Tarry() as tarry:
        yield tarry


@pytest.fixture
def broker(shared: Tarry) -> Iterator[Tarry]:
    """The broker, with an empty topic `orders` of two partitions."""
    shared.topic("orders", partitions=2, retention_ms=-1)
    yield shared
    with Admin(bootstrap_servers=shared.bootstrap) as admin:
        admin.delete_topics(["orders"], outcomes=True)
