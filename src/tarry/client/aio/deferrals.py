"""Deferrals: the producer of an asyncio consumer that defers records."""

from __future__ import annotations

from tarry.client.aio.producer import Producer
from tarry.client.aio.receipt import Receipt
from tarry.client.face.deferral import Deferral, deferring_settings
from tarry.client.settings import ConsumerSettings


class LoopDeferrals:
    """Deferrals of one consumer, for all tasks of its loop."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self._producer: Producer[bytes, bytes] = Producer(deferring_settings(settings))

    async def send(self, deferral: Deferral) -> Receipt:
        """Send a record to its topic, and wait until the broker has it."""
        return await self._producer.send_and_wait(
            deferral.topic,
            deferral.value,
            key=deferral.key,
            headers=deferral.headers,
            partition=deferral.partition,
            deliver_after=deferral.after_ms,
        )

    def abort(self) -> None:
        """Close without waiting; a call that waits for a record gets an error that leaves its fate
        open."""
        self._producer.abort()

    async def settle(self) -> None:
        """Wait until the closed producer has left the event loop."""
        await self._producer.close()
