"""Both logs of the model: appends, high watermarks, copies, cuts and flushes."""

from __future__ import annotations

from tests.support.schedule.clients import Clients
from tests.support.schedule.parts import P, S, Violation


class Replication(Clients):
    """Logs that are copied and cut."""

    def append(self, rep, log, entry):
        rep.log[log].append((rep.known.epoch, *entry))
        return len(rep.log[log]) - 1

    def advance(self, rep):
        if not self.leads(rep):
            return
        isr = rep.known.isr
        for log in (P, S):
            end = rep.fl[log]
            if len(isr) < min(self.floor, 3):
                continue
            if not (self.fault == "hw_of_leader" and log == S):
                for m in isr:
                    if m == rep.id:
                        continue
                    told = rep.ends.get(m)
                    if told is None or told[log] is None:
                        end = -1
                        break
                    end = min(end, told[log])
            if end > rep.hw[log]:
                for i in range(rep.hw[log], end):
                    entry = rep.log[log][i]
                    before = self.committed[log].setdefault(i, entry)
                    if before != entry:
                        raise Violation(f"{'PS'[log]} {i} was committed as {before}, now {entry}")
                rep.hw[log] = end
        if rep.waits:
            left = []
            for wait in rep.waits:
                kind, what, log, place = wait
                if rep.hw[log] <= place:
                    left.append(wait)
                elif kind == "ack":
                    client, conn, batch, in_log = what
                    if client.conn == conn and batch["state"] == "f":
                        batch["state"] = "a"
                        batch["log"] = in_log
                        self.answer_in_order(client)
                else:
                    self.answer(*what)
            rep.waits = left

    def cut(self, rep, log, leader):
        """Cut by epochs; True if something was cut."""
        mine, its = rep.log[log], leader.log[log]
        n = min(len(mine), len(its))
        i = 0
        while i < n and mine[i][0] == its[i][0]:
            if mine[i] != its[i]:
                raise Violation(f"{'PS'[log]} {i}: one epoch, two entries {mine[i]} {its[i]}")
            i += 1
        if i == len(mine):
            return False
        if i < rep.hw[log]:
            if mine[-1][0] >= rep.known.unclean:
                raise Violation(
                    f"replica {rep.id} would cut {'PS'[log]} to {i}, below its high "
                    f"watermark {rep.hw[log]}"
                )
            rep.hw[log] = i
        self.saw("cuts of " + "PS"[log])
        if log == P and any(e[1] == "R" for e in mine[i:]):
            self.saw("cuts of P with releases")
        self.say("cut", "PS"[log], "of", rep.id, "from", len(mine), "to", i)
        del mine[i:]
        rep.fl[log] = min(rep.fl[log], i)
        if log == P:
            rep.start = min(rep.start, i)
        else:
            rep.gone = {g for g in rep.gone if g[0] < i}
        return True

    def fetch(self, rep):
        leader = self.reps[rep.known.leader]
        if leader is rep or not rep.alive or not self.leads(leader):
            return
        if leader.known.epoch != rep.known.epoch:
            return
        told = leader.ends.setdefault(rep.id, [None, None])
        for log in (P, S):
            if not self.cut(rep, log, leader):
                told[log] = rep.fl[log]
        self.advance(leader)
        for log in (P, S):
            most = 99 if self.quiet else self.rng.randint(0, self.takes)
            if log == self.lagging_log and rep.id not in self.row.isr and not self.quiet:
                most = min(most, self.rng.choice((0, 0, 0, 1)))
            n = len(rep.log[log])
            rep.log[log].extend(leader.log[log][n : n + most])
            rep.hw[log] = max(rep.hw[log], min(rep.fl[log], leader.hw[log]))
        rep.start = max(rep.start, min(leader.start, rep.hw[P]))

    def flush(self, rep, both):
        for log in (P, S):
            if both or self.rng.random() < 0.5:
                rep.fl[log] = len(rep.log[log])
        self.advance(rep)
