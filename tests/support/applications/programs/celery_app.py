"""A Celery worker whose queue is a topic (kombu's confluentkafka transport).

    python celery_app.py ADDRESS FROM TO

A thread makes a task of each record; the task passes it on.
"""

import sys
import threading

import confluent_kafka
from celery import Celery

ADDRESS, SOURCE, TARGET = sys.argv[1:4]

app = Celery("celery_app", broker=f"confluentkafka://{ADDRESS}")
app.conf.task_default_queue = f"{SOURCE}-tasks"
app.conf.broker_connection_retry_on_startup = True
app.conf.worker_enable_remote_control = False
app.conf.task_acks_late = True

producer = confluent_kafka.Producer({"bootstrap.servers": ADDRESS})


@app.task(name="pass_on")
def pass_on(key, value):
    producer.produce(TARGET, value, key)
    producer.flush()


def make_tasks():
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": ADDRESS,
            "group.id": f"of-{SOURCE}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([SOURCE])
    while True:
        record = consumer.poll(1.0)
        if record is not None and record.error() is None:
            pass_on.apply_async([record.key().decode(), record.value().decode()], retry=True)
            consumer.commit(record)


if __name__ == "__main__":
    threading.Thread(target=make_tasks, daemon=True).start()
    switches = ["--pool=solo", "--without-mingle", "--without-gossip", "--without-heartbeat"]
    app.worker_main(["worker", *switches, "--loglevel=info"])
