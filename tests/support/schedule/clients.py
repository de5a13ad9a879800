"""State of the model, and the answers that its producers and cancellers get."""

from __future__ import annotations

import random

from tests.support.schedule.parts import (
    BATCHES_FAVOURED,
    FAVOURS,
    WEIGHTS,
    Client,
    P,
    Replica,
    Row,
    S,
    Violation,
)


class Clients:
    """Everything that the model knows, and how answers are given."""

    def __init__(self, seed, fault="", unclean=False, seen=None, story=None):
        self.rng = random.Random(seed)
        self.fault = fault
        self.story = story
        # How often what has happened, over all runs that share it.
        self.seen = {} if seen is None else seen
        self.unclean_mode = unclean
        rng = self.rng
        self.floor = rng.choice((1, 2, 2))
        self.tick = 0
        self.reps = [Replica(i) for i in range(3)]
        self.row = Row(0, 1, 0, (0, 1, 2), -1)
        self.values = {}  # value -> dict
        self.cancels = []
        self.committed = [{}, {}]
        self.tainted_below = 0  # values below may be lost or doubled (unclean election)
        self.conn_number = 0
        self.pids = 0
        self.clients = [self.new_client(), self.new_client()]
        self.quiet = False
        self.batches_left = rng.randint(6, 26)
        self.p_power = rng.choice((0.2, 0.5, 0.9))
        self.p_tear = rng.choice((0.0, 0.3, 0.7))
        self.p_write_fail = rng.choice((0.0, 0.0, 0.08))
        self.takes = rng.choice((1, 2, 4))
        # A replica that is out of sync lags in one log more than in the other.
        self.lagging_log = rng.choice((-1, P, S))
        # No checkpoint comes after an unclean election: leaders crash before.
        self.stops = unclean and rng.random() < 0.5
        self.weights = dict(WEIGHTS)
        self.p_flush_both = 0.6
        # Chance that a cancel names a value again that was asked for lately.
        self.p_ask_again = 0.0
        self.favour(fault)
        for rep in self.reps:
            self.learn(rep)

    def favour(self, fault):
        """Take the settings that favour a fault, if it has some."""
        if fault in FAVOURS:
            factors, drawn = FAVOURS[fault]
            for act, factor in factors.items():
                self.weights[act] *= factor
            self.batches_left = BATCHES_FAVOURED
            vars(self).update(drawn)

    def saw(self, what):
        """Count what has happened, so that a search knows that it has looked at it."""
        self.seen[what] = self.seen.get(what, 0) + 1

    def say(self, *words):
        """Tell a step of the run, if somebody reads it."""
        if self.story is not None:
            self.story.append(f"[{self.tick}] {' '.join(str(word) for word in words)}")

    def new_client(self):
        self.pids += 1
        return Client(self.pids)

    def cal(self, rep):
        return self.tick + rep.skew

    def leads(self, rep):
        k = rep.known
        return rep.alive and k.leader == rep.id and k.life == rep.life

    def send_away(self, rep):
        """Tell its clients NOT_LEADER_OR_FOLLOWER, or let them hear nothing."""
        for client in self.clients:
            if client.conn is not None and client.conn[0] == rep.id:
                self.disconnect(client)

    def disconnect(self, client):
        client.conn = None
        client.queue = []
        for batch in client.open:
            batch["state"] = "q"

    def answer(self, request, word):
        if request["answer"] is not None:
            return
        self.say("answer", request["value"], word)
        request["answer"] = word
        self.saw(f"answers {word}")
        value = self.values[request["value"]]
        if (
            word == "unknown"
            and value["parked_at"] is not None
            and value["parked_at"] <= request["at"]
            and value["cancels"] == 1
            and request["value"] >= self.tainted_below
        ):
            raise Violation(
                f"`unknown` for {request['value']}, which was parked and never cancelled by another"
            )

    def answer_in_order(self, client):
        """Give the answers of a connection in the order of its requests, as the protocol asks."""
        while client.open and client.open[0]["state"] == "a":
            batch = client.open.pop(0)
            value = self.values[batch["value"]]
            value["acked"] = True
            if batch["log"] == S:
                value["parked_at"] = self.tick
            self.say("acked", batch["value"])
