"""A Bytewax dataflow: passes each record on; it resumes from its recovery store.

ADDRESS=... SOURCE=... TARGET=... python -m bytewax.run bytewax_flow -r RECOVERY -s 1 -b 0
"""

import os

import bytewax.operators as op
from bytewax.connectors.kafka import KafkaSinkMessage, operators as kop
from bytewax.dataflow import Dataflow
from confluent_kafka import OFFSET_BEGINNING

BROKERS = [os.environ["ADDRESS"]]

flow = Dataflow("passing")
records = kop.input(
    "in",
    flow,
    brokers=BROKERS,
    topics=[os.environ["SOURCE"]],
    starting_offset=OFFSET_BEGINNING,
)
made = op.map("out", records.oks, lambda one: KafkaSinkMessage(one.key, one.value))
kop.output("to", made, brokers=BROKERS, topic=os.environ["TARGET"])
