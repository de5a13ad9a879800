"""Tarry: a message broker that speaks Kafka's wire protocol."""

from __future__ import annotations

from typing import Final

from tarry import _form

__version__: Final = "0.1.0"

# "compiled" or "interpreted", and why; `tarry version` prints both.
FORM, FORM_REASON = _form.install()
