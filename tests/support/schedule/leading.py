"""The leader of the model: it parks, releases, cancels, and writes checkpoints."""

from __future__ import annotations

from tests.support.schedule.parts import P, S, Violation
from tests.support.schedule.replication import Replication


class Leading(Replication):
    """What a leader does with a schedule, and how a new one rebuilds it."""

    def checkpoint_of(self, rep, index_max):
        log_p, log_s = rep.log
        for i in range(min(index_max, len(log_s)) - 1, -1, -1):
            e = log_s[i]
            if e[1] != "N":
                continue
            c, c_epoch = e[2], e[3]
            if self.fault == "no_c_check":
                return i, e
            if c <= len(log_p) and (c == 0 or log_p[c - 1][0] == c_epoch):
                return i, e
        return None

    def rebuild(self, rep):
        log_p, log_s = rep.log
        for s, e in enumerate(log_s):
            if e[1] == "K":
                rep.parks[s] = e
                rep.by_value[e[2]] = s
            elif e[1] == "C":
                rep.cancelled.setdefault(e[2], s)
        found = self.checkpoint_of(rep, len(log_s))
        index, c, w, exceptions = -1, 0, None, ()
        if found is not None:
            index, (_, _, c, _, w, exceptions) = found
        end = rep.hw[P] if self.fault == "scan_to_hw" else len(log_p)
        for i in range(max(c, rep.start), end):
            e = log_p[i]
            if e[1] == "R":
                body = rep.parks.get(e[4])
                if body is None:
                    continue
                if e[0] >= body[0] or self.fault == "no_epoch_rule":
                    rep.released[e[4]] = i
        if self.fault == "warm_state_kept":
            for s, i in rep.stale.items():
                rep.released.setdefault(s, i)
        for s, e in rep.parks.items():
            if s in rep.cancelled or s in rep.released:
                continue
            is_spoken_of = w is not None and (s < index or self.fault == "watermark_too_wide")
            if is_spoken_of and (e[4], s) <= w and s not in exceptions:
                rep.old.add(s)
            else:
                self.await_due(rep, s, e[4])

    def await_due(self, rep, s, due):
        rep.pending[s] = (due, self.tick + due - self.cal(rep))

    def known_sequences(self, rep, log, pid):
        found = {}
        entries = rep.log[log]
        for i in range(len(entries) - 1, -1, -1):
            e = entries[i]
            if e[1] in "DK" and e[3][0] == pid:
                found[e[3][1]] = i
                if len(found) == 5:
                    break
        return found

    def check(self, rep, pid, seq, goes_to):
        """Both logs' producer states: a duplicate, in order, in a gap, or out of order."""
        known = [self.known_sequences(rep, log, pid) for log in (P, S)]
        for log in (P, S):
            if seq in known[log] and (self.fault != "own_log_only" or log == goes_to):
                return "dup", log, known[log][seq]
        merged = set(known[P]) | set(known[S])
        if not merged or seq > max(merged):
            if not merged or seq == max(merged) + 1:
                return "new", -1, -1
            return "order", -1, -1
        if self.fault == "own_log_only":
            return "new", -1, -1
        if self.fault == "no_gap_fill":
            return "order", -1, -1
        # A torn pair: the sequence is missing between what is there.
        lower = [each for each in merged if each < seq]
        self.saw("gaps looked at")
        if (lower and max(lower) == seq - 1) or (not lower and len(merged) < 5):
            self.saw("gaps filled")
            return "new", -1, -1
        return "order", -1, -1

    def serve(self, client):
        if client.conn is None:
            return
        rep = self.reps[client.conn[0]]
        if not self.leads(rep) or rep.life != client.conn[1]:
            self.disconnect(client)
            return
        count = self.rng.randint(1, max(1, len(client.queue)))
        turn, client.queue = client.queue[:count], client.queue[count:]
        before = [len(rep.log[P]), len(rep.log[S])]
        staged = []
        for batch in turn:
            # Parked whole: because it is due later, or because another record of it is.
            is_later = batch["due"] > self.cal(rep) or batch["is_mixed"]
            goes_to = S if is_later else P
            verdict, log, place = self.check(rep, client.pid, batch["seq"], goes_to)
            if verdict == "dup":
                self.saw("duplicates in " + "PS"[log])
                if log != goes_to:
                    self.saw("duplicates in the other log")
                staged.append((batch, log, place, "dup"))
            elif verdict == "order":
                if batch is client.open[0]:
                    raise Violation(f"producer {client.pid} is stuck at sequence {batch['seq']}")
                batch["state"] = "q"
            else:
                kind = "K" if is_later else "D"
                place = self.append(
                    rep, goes_to, (kind, batch["value"], (client.pid, batch["seq"]), batch["due"])
                )
                staged.append((batch, goes_to, place, "new"))
        failed = [not self.quiet and self.rng.random() < self.p_write_fail for _ in (P, S)]
        for log in (P, S):
            if failed[log]:
                del rep.log[log][before[log] :]
        for batch, log, place, how in staged:
            if failed[log] and place >= before[log]:
                batch["state"] = "q"
                continue
            if how == "new" and log == S:
                rep.parks[place] = rep.log[S][place]
                rep.by_value[batch["value"]] = place
                self.await_due(rep, place, batch["due"])
            self.say(
                "append",
                "PS"[log],
                place,
                batch["value"],
                "seq",
                batch["seq"],
                how,
                "due",
                batch["due"],
                "at",
                rep.id,
            )
            rep.waits.append(("ack", (client, client.conn, batch, log), log, place))
        self.advance(rep)

    def release(self, rep):
        best = None
        for s, (due, deadline) in rep.pending.items():
            if s >= rep.hw[S] and self.fault != "release_uncommitted":
                continue
            if self.fault == "stale_deadline":
                if self.tick < deadline:
                    continue
            elif due > self.cal(rep):
                continue
            if best is None or (due, s) < best:
                best = (due, s)
        if best is None:
            return False
        due, s = best
        if due > self.cal(rep):
            raise Violation(
                f"early: s-offset {s} is due at {due}, the calendar says {self.cal(rep)}"
            )
        body = rep.parks[s]
        if (s, body[0]) in rep.gone:
            if body[2] < self.tainted_below:
                # Its release was committed and lost by an unclean election: lost, and said so.
                del rep.pending[s]
                rep.old.add(s)
                self.saw("bodies gone after an unclean election")
                return True
            raise Violation(f"the body at s-offset {s} is gone, and it was not released")
        if not self.quiet and self.rng.random() < self.p_write_fail:
            return False
        place = self.append(rep, P, ("R", body[2], None, s))
        del rep.pending[s]
        rep.released[s] = place
        self.saw("releases")
        self.say("release", body[2], "s", s, "-> P", place, "at", rep.id)
        self.advance(rep)
        return True

    def cancel(self, rep, request):
        """Decide in the order of the leader; answer when what it rests on is committed."""
        s = rep.by_value.get(request["value"])
        if s is None:
            # A leader that was deposed knows nothing of what the next one has: a note that is
            # committed says that it still led.
            if self.fault == "unknown_at_once":
                self.answer(request, "unknown")
                return
            place = self.append(rep, S, ("A",))
            rep.waits.append(("answer", (request, "unknown"), S, place))
            self.advance(rep)
            return
        if s in rep.cancelled:
            rep.waits.append(("answer", (request, "unknown"), S, rep.cancelled[s]))
        elif s in rep.pending or (self.fault == "cancel_by_p_blind" and s not in rep.old):
            if not self.quiet and self.rng.random() < self.p_write_fail:
                return
            place = self.append(rep, S, ("C", s))
            rep.cancelled[s] = place
            rep.pending.pop(s, None)
            request["has_note"] = True
            self.say("cancel", request["value"], "s", s, "-> S", place, "at", rep.id)
            if self.fault == "cancelled_at_once":
                self.answer(request, "cancelled")
            else:
                rep.waits.append(("answer", (request, "cancelled"), S, place))
        elif s in rep.old or self.fault == "released_at_once":
            self.answer(request, "already_released")
        else:
            rep.waits.append(("answer", (request, "already_released"), P, rep.released[s]))
        self.advance(rep)

    def checkpoint(self, rep):
        log_p = rep.log[P]
        c = len(log_p) if self.fault == "checkpoint_uncommitted" else rep.hw[P]
        done = set(rep.old)
        for s, place in rep.released.items():
            if place < c:
                done.add(s)
        if not done:
            return
        w = max((rep.parks[s][4], s) for s in done if s in rep.parks)
        exceptions = frozenset(
            s
            for s, e in rep.parks.items()
            if s not in done and s not in rep.cancelled and (e[4], s) <= w
        )
        if self.fault == "exceptions_forgotten":
            exceptions = frozenset()
        place = self.append(rep, S, ("N", c, log_p[c - 1][0] if c else -1, w, exceptions))
        self.saw("checkpoints")
        self.saw("checkpoints with exceptions" if exceptions else "checkpoints without exceptions")
        self.say("checkpoint S", place, "c", c, "W", w, "E", sorted(exceptions))
        self.advance(rep)

    def retain(self, rep):
        index_max = len(rep.log[S]) if self.fault == "retention_overtakes" else rep.hw[S]
        found = self.checkpoint_of(rep, index_max)
        if found is not None:
            start = max(rep.start, min(found[1][2], rep.hw[P]))
            if start > rep.start:
                self.saw("starts of P moved")
            rep.start = start

    def compact(self, rep):
        log_p, log_s = rep.log
        end = len(log_p) if self.fault == "compaction_eager" else rep.hw[P]
        for i in range(min(end, len(log_p))):
            e = log_p[i]
            if e[1] != "R" or e[4] >= len(log_s):
                continue
            body = log_s[e[4]]
            if body[1] == "K" and e[0] >= body[0]:
                rep.gone.add((e[4], body[0]))
        for i in range(min(rep.hw[S], len(log_s))):
            if log_s[i][1] == "C":
                rep.gone.add((log_s[i][2], log_s[log_s[i][2]][0]))
