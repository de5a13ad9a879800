"""Rows of the model: the leader, the replicas in sync; crashes, restarts, unclean elections."""

from __future__ import annotations

from tests.support.schedule.leading import Leading
from tests.support.schedule.parts import P, Row, S


class Elections(Leading):
    """Leaders and replicas that come and go."""

    def learn(self, rep):
        rep.known = self.row
        if self.leads(rep):
            if rep.led_epoch != rep.known.epoch:
                self.begin_to_lead(rep)
        elif rep.led_epoch >= 0:
            rep.stale.update(rep.released)
            rep.forget()
            self.send_away(rep)

    def begin_to_lead(self, rep):
        stale = dict(rep.stale)
        stale.update(rep.released)
        rep.stale = stale
        rep.forget()
        self.send_away(rep)
        rep.led_epoch = rep.known.epoch
        rep.first = [len(rep.log[P]), len(rep.log[S])]
        self.rebuild(rep)
        self.saw("leaders")
        self.saw(f"leaders with {min(len(rep.pending), 4)} pending")
        self.say("leads", rep.id, "epoch", rep.known.epoch, "pending", sorted(rep.pending))
        self.advance(rep)

    def put_row(self, **fields):
        self.row = self.row._replace(**fields)

    def claim(self, rep):
        isr = [m for m in self.row.isr if self.reps[m].alive]
        for m in self.row.isr:
            if m not in isr and len(isr) < self.floor:
                isr.append(m)
        self.row = Row(rep.id, rep.life, self.row.epoch + 1, tuple(isr), self.row.unclean)
        self.say("claim", self.row)
        self.learn(rep)

    def leader_is_over(self):
        leader = self.reps[self.row.leader]
        return not leader.alive or leader.life != self.row.life

    def change_isr(self, leader):
        if not self.leads(leader) or leader.known != self.row:
            return
        isr = list(self.row.isr)
        for rep in self.reps:
            if rep is leader:
                continue
            told = leader.ends.get(rep.id)
            if rep.id in isr:
                is_lagging = not rep.alive or (not self.quiet and self.rng.random() < 0.3)
                if is_lagging and len(isr) > self.floor:
                    isr.remove(rep.id)
            elif rep.alive and told is not None and None not in told:
                logs = (P,) if self.fault == "join_by_p" else (P, S)
                # The fetch is of this life: what it told is still on its disk.
                if all(
                    rep.fl[log] >= told[log] >= max(leader.hw[log], leader.first[log])
                    for log in logs
                ):
                    isr.append(rep.id)
        if tuple(isr) != self.row.isr:
            self.put_row(isr=tuple(isr))
            self.say("isr", self.row.isr)
            self.learn(leader)
            self.advance(leader)

    def crash(self, rep, power):
        self.saw("power losses" if power else "kills")
        self.say("crash", rep.id, "power" if power else "kill")
        rep.alive = False
        rep.stale = {}
        rep.forget()
        if power:
            for log in (P, S):
                keep = self.rng.randint(rep.fl[log], len(rep.log[log]))
                if self.rng.random() < self.p_tear:
                    keep = self.rng.choice((rep.fl[log], len(rep.log[log])))
                del rep.log[log][keep:]
            rep.gone = {g for g in rep.gone if g[0] < len(rep.log[S])}
        for client in self.clients:
            if client.conn is not None and client.conn[0] == rep.id:
                self.disconnect(client)

    def restart(self, rep):
        rep.alive = True
        rep.life += 1
        for log in (P, S):
            rep.fl[log] = len(rep.log[log])
            rep.hw[log] = min(rep.hw[log], len(rep.log[log]))
        rep.start = min(rep.start, len(rep.log[P]))
        for other in self.reps:
            other.ends.pop(rep.id, None)
        self.learn(rep)
        self.say("restart", rep.id)

    def elect_unclean(self):
        if any(self.reps[m].alive for m in self.row.isr):
            return
        living = [rep for rep in self.reps if rep.alive]
        if not living:
            return
        rep = self.rng.choice(living)
        rep.fl = [len(rep.log[P]), len(rep.log[S])]
        epoch = self.row.epoch + 1
        self.row = Row(rep.id, rep.life, epoch, (rep.id,), epoch)
        self.tainted_below = len(self.values)
        self.committed = [{}, {}]
        self.saw("unclean elections")
        self.say("UNCLEAN", self.row)
        for client in self.clients:
            self.disconnect(client)
        self.clients = [self.new_client(), self.new_client()]
        self.batches_left += 8
        for log in (P, S):
            for i in range(min(rep.hw[log], len(rep.log[log]))):
                self.committed[log][i] = rep.log[log][i]
        self.learn(rep)
