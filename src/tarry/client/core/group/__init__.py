"""The group side of a consumer: membership, commits, and who reads what."""

from __future__ import annotations
