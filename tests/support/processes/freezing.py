"""A broker that tells what its process has frozen, while a topic is made in it and deleted.

Run as a script: `freezing.py DIRECTORY PARTITIONS`.  A line of its output is how many objects are
frozen: at first, when the topic's logs are frozen, and when the topic is deleted and they are gone.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable

import click
from tests.support.patience import PATIENCE_S

from tarry.base.settings import Settings
from tarry.client import Admin, NewTopic
from tarry.runtime.serve import serve


class Freezing:
    """Broker's process; `read_again` is called between two turns after each SIGHUP."""

    def __init__(self, directory: str, partitions: int) -> None:
        self.texts = {"log.dirs": directory, "listeners": "PLAINTEXT://127.0.0.1:0"}
        self.partitions = partitions
        self.frozen = 0
        self.has_looked = threading.Event()

    def announce(self, settings: Settings) -> None:
        address = f"127.0.0.1:{settings.open_listeners[0].port}"
        threading.Thread(target=self.use, args=(address,), daemon=True).start()

    def read_again(self) -> Settings:
        self.frozen = gc.get_freeze_count()
        self.has_looked.set()
        return Settings(dict(self.texts))

    def look_until(self, is_met: Callable[[int], bool]) -> None:
        """Look between two turns, until the count of frozen objects is as it should be."""
        while True:
            self.has_looked.clear()
            os.kill(os.getpid(), signal.SIGHUP)
            self.has_looked.wait(PATIENCE_S)
            if is_met(self.frozen):
                click.echo(str(self.frozen))
                return

    def use(self, address: str) -> None:
        """Make a topic and delete it, and look between."""
        try:
            self.look_until(lambda frozen: frozen > 0)
            at_first = self.frozen
            with Admin(bootstrap_servers=address) as admin:
                admin.create_topics([NewTopic("many", self.partitions)])
                self.look_until(lambda frozen: frozen >= at_first + 10 * self.partitions)
                admin.delete_topics(["many"])
                self.look_until(lambda frozen: frozen < at_first + 5 * self.partitions)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    freezing = Freezing(sys.argv[1], int(sys.argv[2]))
    reason = serve(Settings(dict(freezing.texts)), freezing.announce, freezing.read_again)
    sys.exit(reason or 0)
