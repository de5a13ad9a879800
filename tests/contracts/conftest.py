"""A broker of ours and each face of the client, for contracts that bring none of their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.client.faces import FACES_OF_RECORDS, SyncFace as Face, make_face

from tarry.testing import Tarry


@pytest.fixture
def broker() -> Iterator[Tarry]:
    """A broker for one test: its calendar goes by the machine's until the test moves it on."""
    with Tarry() as made:
        yield made


@pytest.fixture(params=FACES_OF_RECORDS)
def face(request: pytest.FixtureRequest) -> Iterator[Face]:
    made = make_face(request.param)
    yield made
    made.close()
