"""Report of an audited day: what was sent, asked and answered, how late it came, what is wrong."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Final

from tests.support.audit.account import ACKED, DOUBT, MOVE, REFUSED, Account, Window
from tests.support.audit.judgement import FOREVER, Judge, Violation
from tests.support.audit.ordering import order_violations
from tests.support.audit.recurrences import recurring_violations

VIOLATIONS_SHOWN: Final = 40
PERCENTILES: Final = (50.0, 99.0, 99.9, 100.0)


def judge_all(account: Account) -> list[Violation]:
    judge = Judge(account)
    return [*judge.violations(), *order_violations(judge), *recurring_violations(judge)]


def report_lines(account: Account, violations: list[Violation], loads: list[float]) -> list[str]:
    judge = Judge(account)
    return [
        *_client_lines(judge),
        "",
        *_answer_lines(account),
        "",
        *_hardship_lines(judge),
        "",
        *_lateness_lines(judge),
        _load_line(loads),
        "",
        *_violation_lines(violations),
    ]


def _client_lines(judge: Judge) -> Iterator[str]:
    """A line a client: what became of its records."""
    head = (
        f"{'client':16}{'sent':>8}{'acked':>8}{'doubt':>7}{'refused':>9}{'came':>8}{'waiting':>9}"
    )
    yield f"{head}{'taken back':>12}{'recurring':>11}{'instances':>11}"
    account = judge.account
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for record in account.entrusted.values():
        count = counts[record.client]
        count["sent"] += 1
        count[record.answer] += 1
        count["came"] += len(judge.found[record.uid])
        count["waiting"] += len(judge.listed[record.uid])
        is_there = judge.found[record.uid] or judge.listed[record.uid]
        count["gone"] += record.answer == ACKED and not is_there
    for one in account.recurring.values():
        counts[one.client]["recurring"] += 1
        counts[one.client]["instances"] += len(judge.found[one.uid])
    total = sum(counts.values(), Counter[str]())
    for name, count in [*sorted(counts.items()), ("all", total)]:
        yield (
            f"{name:16}{count['sent']:8}{count[ACKED]:8}{count[DOUBT]:7}{count[REFUSED]:9}"
            f"{count['came']:8}{count['waiting']:9}{count['gone']:12}{count['recurring']:11}"
            f"{count['instances']:11}"
        )


def _answer_lines(account: Account) -> Iterator[str]:
    """A line for what was asked, with its answers."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for asked in account.asked:
        counts[asked.what][asked.outcome] += 1
        counts[asked.what]["after another try"] += asked.is_repeated
    for record in account.entrusted.values():
        if record.replaces:
            counts["replace"][record.answer] += 1
    for what, count in sorted(counts.items()):
        told = ", ".join(f"{number} {name}" for name, number in sorted(count.items()) if number)
        yield f"{what:20}{sum(count.values()) - count['after another try']:7}: {told}"


def _hardship_lines(judge: Judge) -> Iterator[str]:
    by_kind: dict[str, list[Window]] = defaultdict(list)
    for window in judge.account.windows:
        by_kind[window.what].append(window)
    yield f"{'hardship':16}{'times':>7}{'longest s':>11}{'together s':>12}"
    for kind, windows in sorted(by_kind.items()):
        lengths = [(each.end_ms - each.begin_ms) / 1_000 for each in windows]
        yield f"{kind:16}{len(windows):7}{max(lengths):11.1f}{sum(lengths):12.1f}"


def _lateness_lines(judge: Judge) -> Iterator[str]:
    """How long after its due time a consumer had each record, by what was going on."""
    inside: dict[str, list[int]] = defaultdict(list)
    outside: list[int] = []
    ahead = 0
    windows = sorted(judge.account.windows, key=lambda each: each.begin_ms)
    for come in judge.account.found:
        record = judge.account.entrusted.get(come.uid)
        if record is None or come.arrived_ms < 0 or record.answer != ACKED or record.after_ms >= 0:
            continue
        due = judge.due_of(record, FOREVER)
        if due.low_ms != due.high_ms or due.low_ms <= record.sent_ms or record.replaces:
            continue
        if any(each.what == MOVE for each in judge.asked[record.uid]):
            continue
        late_ms = come.arrived_ms - due.low_ms
        if late_ms < 0:
            ahead += 1
            continue
        met = [
            each.what
            for each in windows
            if each.begin_ms <= come.arrived_ms and each.end_ms >= record.sent_ms
            if each.end_ms >= due.low_ms or each.end_ms >= record.sent_ms > due.low_ms
        ]
        for what in set(met):
            inside[what].append(late_ms)
        if not met:
            outside.append(late_ms)
    names = "".join(f"{_name(each):>9}" for each in PERCENTILES)
    yield f"{'late, ms':16}{'records':>9}{names}"
    rows = [("no hardship", outside), *sorted(inside.items())]
    for name, lates in rows:
        if lates:
            figures = "".join(f"{_percentile(lates, each):9}" for each in PERCENTILES)
            yield f"{name:16}{len(lates):9}{figures}"
    yield f"{ahead} came before their time by a calendar that was ahead"


def _name(percent: float) -> str:
    return "worst" if percent == 100.0 else f"p{percent:g}"


def _percentile(values: list[int], percent: float) -> int:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def _load_line(loads: list[float]) -> str:
    if not loads:
        return ""
    return (
        f"load average of the machine with {os.cpu_count()} cores: {min(loads):.1f} to "
        f"{max(loads):.1f}, mean {sum(loads) / len(loads):.1f}"
    )


def _violation_lines(violations: list[Violation]) -> Iterator[str]:
    for each in violations[:VIOLATIONS_SHOWN]:
        yield f"VIOLATION {each.rule}: {each.sentence}"
        if each.where:
            yield f"    {each.where}"
    if len(violations) > VIOLATIONS_SHOWN:
        yield f"and {len(violations) - VIOLATIONS_SHOWN} more"
    counts = Counter(each.rule for each in violations)
    told = ", ".join(f"{count} {rule}" for rule, count in sorted(counts.items()))
    yield f"violations: {told or 'none'}"
