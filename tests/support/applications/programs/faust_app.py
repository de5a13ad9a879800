"""A Faust application: passes each record on and counts them by key in a table.

    ADDRESS=... SOURCE=... TARGET=... python -m faust -A faust_app worker --without-web

The table has a changelog topic.
"""

import os

import faust

SOURCE = os.environ["SOURCE"]
RAW = {"key_serializer": "raw", "value_serializer": "raw"}

app = faust.App(
    f"of-{SOURCE}",
    broker=f"kafka://{os.environ['ADDRESS']}",
    store="memory://",
    topic_partitions=3,
    topic_replication_factor=1,
    broker_commit_interval=0.5,
)
records = app.topic(SOURCE, key_type=bytes, value_type=bytes, **RAW)
passed_on = app.topic(os.environ["TARGET"], key_type=bytes, value_type=bytes, **RAW)
counts = app.Table("counts", default=int)


@app.agent(records)
async def pass_on(stream):
    async for event in stream.events():
        counts[event.key.decode()] += 1
        await passed_on.send(key=event.key, value=event.value)
