"""Access to an API: the right that a caller needs for a request, and for which resources.

Every route names its access, so that no API is open by mistake.
"""

from __future__ import annotations

from typing import Final


class Access:
    """Access of one kind.  An API that is not `OPEN` needs a subclass of its own."""


# Access of every client that may connect.
OPEN: Final = Access()
