"""Every test with a `face` runs over both purgatories."""

from __future__ import annotations

import pytest
from tests.support.purgatory_faces import FACES, Face, PureFace, ThreadedFace


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def face(request: pytest.FixtureRequest) -> Face:
    made: Face = request.param()
    return made


@pytest.fixture
def purgatory(face: Face) -> object:
    return face.purgatory


@pytest.fixture
def pure() -> PureFace:
    return PureFace()


@pytest.fixture
def threaded() -> ThreadedFace:
    return ThreadedFace()
