"""Model of scheduled records on replicated partitions: P and its companion log S under one row.

One partition, three replicas, one row (leader, life, epoch, isr) that changes atomically, two
idempotent producers with retries and five requests under way, cancellers, a consumer.  Logs are
written and flushed apart; a loss of power keeps any prefix of what was written and not flushed, of
each log by itself.  Followers copy P and S in steps of any size, each at its own pace.

Checked: nothing acknowledged is lost, nothing comes twice (acknowledged or not), nothing before
its time by the leader's calendar, what was committed stays, no producer is stuck, and the answers
cancelled / already_released / unknown are true for ever.

Not in it: notes torn from their bodies, several records a batch, replacing, recurring records.
"""

from __future__ import annotations

from typing import Final

from tests.support.schedule.elections import Elections
from tests.support.schedule.parts import FAVOURS, STEPS_FAVOURED, P, Violation

# Steps of a run, by its seed in turn.
STEPS: Final = (80, 200, 400)


class ScheduleModel(Elections):
    """One run of a seed; `fault` is one of `FAULTS`, planted."""

    def produce(self, client):
        if client.conn is None:
            leaders = [rep for rep in self.reps if self.leads(rep)]
            leaders = [rep for rep in leaders if rep.known.epoch >= client.epoch]
            if not leaders:
                return
            self.conn_number += 1
            rep = self.rng.choice(leaders)
            client.epoch = rep.known.epoch
            client.conn = (rep.id, rep.life, self.conn_number)
        if self.batches_left > 0 and len(client.open) < 5 and not self.quiet:
            self.batches_left -= 1
            value = len(self.values)
            delay = self.rng.choice((0, 0, 1, 2, 5, 9, 20))
            due = self.tick + delay
            self.values[value] = {
                "acked": False,
                "parked_at": None,
                "cancels": 0,
                "is_later": delay > 1,
            }
            client.open.append(
                {
                    "seq": client.next_seq,
                    "value": value,
                    "due": due,
                    "state": "q",
                    "is_mixed": self.rng.random() < 0.15,
                }
            )
            client.next_seq += 1
        for batch in client.open:
            if batch["state"] == "q":
                batch["state"] = "f"
                client.queue.append(batch)

    def ask_cancel(self):
        if not self.values:
            return
        leaders = [rep for rep in self.reps if self.leads(rep)]
        if not leaders:
            return
        value = self.rng.randrange(max(0, len(self.values) - 10), len(self.values))
        if self.rng.random() < 0.7:
            later = [each for each in list(self.values)[-10:] if self.values[each]["is_later"]]
            value = self.rng.choice(later) if later else value
        if self.p_ask_again and self.cancels and self.rng.random() < self.p_ask_again:
            value = self.rng.choice(self.cancels[-3:])["value"]
        self.values[value]["cancels"] += 1
        request = {"value": value, "answer": None, "has_note": False, "at": self.tick}
        self.cancels.append(request)
        self.cancel(self.rng.choice(leaders), request)

    def step(self):
        rng = self.rng
        (act,) = rng.choices(list(self.weights), self.weights.values())
        if self.unclean_mode and len(self.row.isr) < 3 and rng.random() < 0.01:
            # All in sync are gone at once; one that is not in sync is elected.
            for m in self.row.isr:
                if self.reps[m].alive:
                    self.crash(self.reps[m], rng.random() < self.p_power)
            self.elect_unclean()
            return
        rep = rng.choice(self.reps)
        leaders = [each for each in self.reps if self.leads(each)]
        if act == "produce":
            self.produce(rng.choice(self.clients))
        elif act == "serve":
            self.serve(rng.choice(self.clients))
        elif act == "fetch":
            self.fetch(rep)
        elif act == "flush":
            if rep.alive:
                self.flush(rep, rng.random() < self.p_flush_both)
        elif act == "release":
            if leaders:
                self.release(rng.choice(leaders))
        elif act == "tick":
            self.tick += rng.choice((1, 1, 2, 4))
        elif act == "cancel":
            self.ask_cancel()
        elif act == "checkpoint":
            if leaders and not (self.stops and self.row.unclean >= 0):
                self.checkpoint(rng.choice(leaders))
        elif act == "retain":
            if leaders:
                self.retain(rng.choice(leaders))
        elif act == "compact":
            if rep.alive:
                self.compact(rep)
        elif act == "change_isr":
            if leaders:
                self.change_isr(rng.choice(leaders))
        elif act == "learn":
            if rep.alive:
                self.learn(rep)
        elif act == "crash":
            if rep.alive:
                self.crash(rep, rng.random() < self.p_power)
        elif act == "restart":
            if not rep.alive:
                self.restart(rep)
        elif act == "lead_again":
            self.lead_again(rep)
        elif act == "step_clock":
            rep.skew = rng.choice((-3, -1, 0, 0, 1, 3))
        else:
            self.disconnect(rng.choice(self.clients))

    def lead_again(self, rep):
        if not rep.alive or rep.id not in self.row.isr:
            if self.unclean_mode and self.leader_is_over():
                self.elect_unclean()
            return
        is_hand_over = self.rng.random() < 0.25
        if self.leader_is_over() or (is_hand_over and self.row.leader != rep.id):
            self.claim(rep)

    def drain(self):
        self.quiet = True
        for rep in self.reps:
            rep.skew = 0
        for _ in range(80):
            self.tick += 3
            for rep in self.reps:
                if not rep.alive:
                    self.restart(rep)
            if self.leader_is_over():
                self.claim(self.reps[self.rng.choice(self.row.isr)])
            for rep in self.reps:
                self.learn(rep)
            leader = self.reps[self.row.leader]
            for client in self.clients:
                if client.conn is not None and client.conn[:2] != (leader.id, leader.life):
                    self.disconnect(client)
                self.produce(client)
                while client.queue:
                    self.serve(client)
            while self.release(leader):
                pass
            for _ in range(3):
                for rep in self.reps:
                    self.flush(rep, True)
                for rep in self.reps:
                    self.fetch(rep)
            self.change_isr(leader)
            if not self.stops:
                self.checkpoint(leader)
            for rep in self.reps:
                self.compact(rep)
            is_over = (
                not any(client.open for client in self.clients)
                and not leader.pending
                and len(leader.known.isr) == 3
                and leader.hw[P] == len(leader.log[P])
                and not leader.waits
            )
            if is_over:
                return leader
        raise Violation(
            f"not at rest: open {[len(c.open) for c in self.clients]} pending "
            f"{sorted(leader.pending)} isr {leader.known.isr} hw {leader.hw} of "
            f"{[len(each) for each in leader.log]}"
        )

    def run(self, steps):
        for _ in range(steps):
            self.step()
        leader = self.drain()
        times = {}
        for entry in leader.log[P]:
            times[entry[2]] = times.get(entry[2], 0) + 1
        for value, facts in self.values.items():
            n = times.get(value, 0)
            if value < self.tainted_below:
                continue
            if n > 1:
                raise Violation(f"value {value} came {n} times")
            asked = [each for each in self.cancels if each["value"] == value]
            words = [each["answer"] for each in asked]
            if "cancelled" in words and n:
                raise Violation(f"value {value} was `cancelled`, and it came")
            if "already_released" in words and not n:
                raise Violation(f"value {value} was `already_released`, and it never came")
            may_be_cancelled = any(each["has_note"] for each in asked)
            if facts["acked"] and not n and not may_be_cancelled:
                raise Violation(f"value {value} was acknowledged and lost")
        return len(self.values)


def steps_of(seed, fault):
    """Return how many steps a run has."""
    return STEPS_FAVOURED if fault in FAVOURS else STEPS[seed % len(STEPS)]


def first_violation(seeds, fault="", unclean=False, seen=None):
    """Return the first of these seeds that violates something, with the sentence; None if none
    does."""
    for seed in seeds:
        model = ScheduleModel(seed, fault, unclean, seen)
        try:
            model.run(steps_of(seed, fault))
        except Violation as violation:
            return seed, str(violation)
    return None
