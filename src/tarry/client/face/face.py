"""ClientFace: the base of every client's face, whatever it does and however it waits."""

from __future__ import annotations

from typing import Generic, NoReturn

from tarry.client.face.driver import Core, FaceDriver


class ClientFace(Generic[Core]):
    """Face of one core, to be subclassed.  Its connections, locks and threads belong to one
    process."""

    _driver: FaceDriver[Core]

    @property
    def _core(self) -> Core:
        """Core of the driver; in a forked child an object that refuses every access."""
        return self._driver.core

    def _particulars(self) -> str:
        """Return what `repr` shows besides the bootstrap servers."""
        return ""

    def __repr__(self) -> str:
        return self._driver.describe(self, self._particulars())

    def __reduce__(self) -> NoReturn:
        name = type(self).__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise TypeError(
            f"{article} {name} cannot be pickled or copied, its connections belong to this "
            "process: make it in the process that uses it"
        )
