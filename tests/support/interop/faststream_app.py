"""A FastStream application: passes each record on under its key, in upper case.

    python faststream_app.py ADDRESS FROM TO

It runs until standard input ends.
"""

from __future__ import annotations

import asyncio
import sys

from faststream import FastStream
from faststream.kafka import KafkaBroker
from faststream.kafka.annotations import KafkaMessage

ADDRESS, SOURCE, TARGET = sys.argv[1:4]

broker = KafkaBroker(ADDRESS)
app = FastStream(broker)
passed_on = broker.publisher(TARGET)


@broker.subscriber(SOURCE, group_id=f"of-{SOURCE}", auto_offset_reset="earliest")
async def pass_on(value: str, message: KafkaMessage) -> None:
    await passed_on.publish(value, key=message.raw_message.key)


async def main() -> None:
    loop = asyncio.get_running_loop()
    loop.run_in_executor(None, sys.stdin.buffer.read).add_done_callback(lambda _: app.exit())
    await app.run()


if __name__ == "__main__":
    asyncio.run(main())
