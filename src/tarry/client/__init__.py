"""A Kafka client: one core without input and output, thin faces around it.

Each face is imported from its own module, so that a program loads what it uses:
`tarry.client.sync.producer`, `tarry.client.sync.consumer`, `tarry.client.sync.admin`.
"""

from __future__ import annotations
