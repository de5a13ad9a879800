"""A Quix Streams application: passes each record on and counts them by key in its state.

    python quix_streams.py ADDRESS FROM TO

The state lies in RocksDB in the working directory and in a changelog topic.
"""

import sys

from quixstreams import Application

ADDRESS, SOURCE, TARGET = sys.argv[1:4]

app = Application(
    broker_address=ADDRESS,
    consumer_group=f"of-{SOURCE}",
    auto_offset_reset="earliest",
    commit_interval=0.5,
)


def count(value, state):
    state.set("count", state.get("count", 0) + 1)
    return value


if __name__ == "__main__":
    records = app.dataframe(app.topic(SOURCE, key_deserializer="str", value_deserializer="str"))
    passed_on = app.topic(TARGET, key_serializer="str", value_serializer="str")
    records.apply(count, stateful=True).to_topic(passed_on)
    app.run()
