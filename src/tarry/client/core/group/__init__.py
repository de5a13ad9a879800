"""The group side of a consumer: membership, assignments and commits."""

from __future__ import annotations
