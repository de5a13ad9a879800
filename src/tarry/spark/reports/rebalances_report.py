"""Report of rebalances: what the members of each group went through, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from tarry.spark.events.group_story import (
    A_DEATH,
    A_LEAVE,
    CAUSES,
    CUT_OFF,
    NO_SYNC,
    OTHER,
    UNDER_WAY,
    GroupRebalance,
    MemberTime,
)
from tarry.spark.jobs.rebalances import GroupRow, RebalanceSums
from tarry.spark.reports.installed import load_altair
from tarry.spark.reports.page import Figure, Key, Page, Plot, Section, Table
from tarry.spark.reports.plots import (
    coloured,
    data_of,
    keys,
    length_text,
    over_time,
    over_waits,
    plot,
    shaped,
    time_text,
)

# Groups that are drawn, those that stood still longest, and members of each of them.
GROUPS_MAX: Final = 12
MEMBERS_MAX: Final = 40
# Rebalances of a group that are drawn, the last ones: each is a mark on the bar of each member.
REBALANCES_MAX: Final = 300

# Row of a timeline that has the rebalances of the whole group.
WHOLE: Final = "the group"

WORKS: Final = "works"
STANDS: Final = "stands still"
STATES: Final = {WORKS: "var(--pale)", STANDS: "var(--c2)"}

ENDS: Final = {
    "joined": "var(--c3)",
    "left": "var(--c7)",
    "died": "var(--bad)",
    "removed": "var(--c5)",
}
END_SHAPES: Final = {
    "joined": "triangle-right",
    "left": "square",
    "died": "cross",
    "removed": "diamond",
}

COLOURS: Final = {
    A_DEATH: "var(--bad)",
    A_LEAVE: "var(--c7)",
    NO_SYNC: "var(--c5)",
    "a member joined": "var(--c3)",
    "a member came back": "var(--c6)",
    "the leader joined again": "var(--c8)",
    "a member changed": "var(--c4)",
    OTHER: "var(--c1)",
}
SHAPES: Final = {
    A_DEATH: "cross",
    A_LEAVE: "square",
    NO_SYNC: "diamond",
    "a member joined": "triangle-up",
    "a member came back": "triangle-down",
    "the leader joined again": "circle",
    "a member changed": "triangle-left",
    OTHER: "triangle-right",
}


def rebalances_page(found: RebalanceSums) -> Page:
    """Return the report."""
    tally = found.tally
    if tally.first_ms is None or tally.last_ms is None or not found.groups:
        nothing = "The event log tells of no rebalance in this time."
        return Page("Rebalances", nothing, (), tally.remarks())
    subtitle = (
        f"{time_text(tally.first_ms)} to {time_text(tally.last_ms)} UTC. From the begin of a "
        "rebalance until the group is stable again its members stand still; those of a "
        "cooperative assignor may read on in the partitions that they keep."
    )
    sections = [_overview(found.groups)]
    drawn = sorted(found.groups, key=lambda row: (-row.stood_ms, row.group))[:GROUPS_MAX]
    for row in drawn:
        sections.append(_group(found, row.group))
    return Page("Rebalances", subtitle, _figures(found.groups), tally.remarks(), sections)


def _figures(groups: Sequence[GroupRow]) -> list[Figure]:
    died = sum(row.died for row in groups)
    return [
        Figure(f"{len(groups):,}", "groups of which something is told"),
        Figure(f"{sum(row.rebalances for row in groups):,}", "rebalances"),
        Figure(length_text(max(row.longest_ms for row in groups)), "the longest standstill"),
        Figure(f"{died:,}", "members that died", is_bad=died > 0),
    ]


def _overview(groups: Sequence[GroupRow]) -> Section:
    ordered = sorted(groups, key=lambda row: (-row.stood_ms, row.group))
    rows = [
        [
            row.group,
            row.rebalances,
            length_text(row.stood_ms),
            length_text(row.longest_ms),
            row.died,
            row.left,
        ]
        for row in ordered
    ]
    titles = ["group", "rebalances", "stood still", "longest", "members died", "members left"]
    more = f" The {GROUPS_MAX} first are drawn below." if len(groups) > GROUPS_MAX else ""
    return Section(
        "Groups",
        f"Those that stood still longest come first.{more}",
        tables=[Table(titles, rows, "Groups", is_open=True)],
    )


def _group(found: RebalanceSums, group: str) -> Section:
    assert found.tally.first_ms is not None
    assert found.tally.last_ms is not None
    span = (found.tally.first_ms, found.tally.last_ms)
    rebalances = [one for one in found.rebalances if one.group == group]
    members = [one for one in found.members if one.group == group]
    drawn = rebalances[-REBALANCES_MAX:]
    plots = [_timeline(members, drawn, span)]
    if rebalances:
        plots += [_standstills(drawn, span), _causes(rebalances)]
    text = ""
    if len(drawn) < len(rebalances):
        text = f"The last {len(drawn):,} of {len(rebalances):,} rebalances are drawn over time."
    return Section(
        f"Group {group}",
        text,
        plots=plots,
        tables=[_rebalance_table(rebalances), _member_table(members)],
    )


def _rebalance_table(rebalances: Sequence[GroupRebalance]) -> Table:
    rows = [
        [
            time_text(one.began_ms),
            _stood_text(one),
            "-" if one.generation is None else one.generation,
            "-" if one.members is None else one.members,
            one.cause,
            "; ".join(one.notes),
        ]
        for one in rebalances
    ]
    titles = ["began (UTC)", "stood still", "generation", "members", "cause", "what happened"]
    return Table(titles, rows, "Rebalances")


def _stood_text(one: GroupRebalance) -> str:
    if one.ended == CUT_OFF:
        return "until the broker ended"
    return length_text(one.stood_ms) + (" so far" if one.ended == UNDER_WAY else "")


def _member_table(members: Sequence[MemberTime]) -> Table:
    rows = [
        [
            one.member,
            one.client or "-",
            "before" if one.joined_ms is None else time_text(one.joined_ms),
            "-" if one.ended_ms is None else time_text(one.ended_ms),
            f"{one.end}: {one.reason}" if one.end else "is there",
            one.rebalances,
            length_text(one.stood_ms),
        ]
        for one in members
    ]
    titles = ["member", "client", "joined (UTC)", "ended (UTC)", "how", "rebalances", "stood still"]
    return Table(titles, rows, "Members")


def _timeline(
    members: Sequence[MemberTime], rebalances: Sequence[GroupRebalance], span: tuple[int, int]
) -> Plot:
    alt = load_altair()
    drawn = sorted(members, key=lambda one: (one.joined_ms or 0, one.member))[:MEMBERS_MAX]
    first_ms, last_ms = span
    bars: list[dict[str, Any]] = []
    marks: list[dict[str, Any]] = []
    names = _row_names([one.member for one in drawn])
    for one in drawn:
        name = names[one.member]
        begin_ms = first_ms if one.joined_ms is None else one.joined_ms
        end_ms = last_ms if one.ended_ms is None else one.ended_ms
        bars += _pieces(one, name, rebalances, begin_ms, end_ms)
        told = {"row": name, "member": one.member}
        if one.joined_ms is not None:
            marks.append({**told, "at": begin_ms, "when": time_text(begin_ms), "what": "joined"})
        if one.ended_ms is not None:
            ended = {"at": end_ms, "when": time_text(end_ms), "what": one.end}
            marks.append({**told, **ended, "why": one.reason})
    rows = [WHOLE, *names.values()]
    place = alt.Y(
        "row:N",
        sort=rows,
        axis=alt.Axis(title=None, labelLimit=150, labelPadding=10, ticks=False, grid=True),
    )
    chart = alt.layer(
        *_layers(bars, marks, [_whole(one) for one in rebalances], place, last_ms - first_ms)
    )
    chart = chart.resolve_scale(color="independent", shape="independent")
    left = len(members) - len(drawn)
    text = "A bar is the time of a member in the group; hover over a mark for its reason."
    if left:
        text += f" {left:,} more members are in the table."
    legend = [*keys(STATES), *keys(ENDS, END_SHAPES)]
    return plot(chart, "Members", text, 60 + 22 * len(rows), legend, is_wide=True)


def _layers(
    bars: list[dict[str, Any]],
    marks: list[dict[str, Any]],
    whole: list[dict[str, Any]],
    place: Any,
    span_ms: int,
) -> list[Any]:
    """Return the layers of a timeline: times of members, standstills, rebalances, ends."""
    alt = load_altair()
    states = (
        alt.Chart(data_of(bars))
        .mark_bar(height={"band": 0.55})
        .encode(
            x=over_time("begin", span_ms),
            x2="end:T",
            y=place,
            color=coloured("state", STATES),
            tooltip=_tooltip("member", "state", "from", "for"),
        )
    )
    stands = (
        # A standstill of a few ms is seen too.
        alt.Chart(data_of([bar for bar in bars if bar["state"] == STANDS]))
        .mark_tick(thickness=2, opacity=1)
        .encode(x=over_time("begin", span_ms), y=place, color=coloured("state", STATES))
    )
    group = (
        alt.Chart(data_of(whole))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=over_time("begin", span_ms),
            y=place,
            color=coloured("cause", COLOURS),
            shape=shaped("cause", SHAPES),
            tooltip=_tooltip("from", "cause", "why", "stood still"),
        )
    )
    ends = (
        alt.Chart(data_of(marks))
        .mark_point(filled=True, size=60, opacity=1)
        .encode(
            x=over_time("at", span_ms),
            y=place,
            color=coloured("what", ENDS),
            shape=shaped("what", END_SHAPES),
            tooltip=_tooltip("member", "when", "what", "why"),
        )
    )
    return [states, stands, group, ends]


def _tooltip(*names: str) -> list[Any]:
    alt = load_altair()
    return [alt.Tooltip(f"{name}:N") for name in names]


def _pieces(
    one: MemberTime, name: str, rebalances: Sequence[GroupRebalance], begin_ms: int, end_ms: int
) -> list[dict[str, Any]]:
    """Return the bars of a member: all of its time, and upon it when it stood still."""
    found = [_bar(one, name, WORKS, begin_ms, end_ms)]
    for rebalance in rebalances:
        first_ms, last_ms = max(rebalance.began_ms, begin_ms), min(rebalance.ended_ms, end_ms)
        if first_ms <= last_ms:
            found.append(_bar(one, name, STANDS, first_ms, last_ms))
    return found


def _bar(one: MemberTime, name: str, state: str, begin_ms: int, end_ms: int) -> dict[str, Any]:
    return {
        "row": name,
        "member": one.member,
        "state": state,
        "begin": begin_ms,
        "end": end_ms,
        "from": time_text(begin_ms),
        "for": length_text(end_ms - begin_ms),
    }


def _whole(one: GroupRebalance) -> dict[str, Any]:
    return {
        "row": WHOLE,
        "begin": one.began_ms,
        "from": time_text(one.began_ms),
        "cause": one.cause,
        "why": one.reason or "not known",
        "stood still": _stood_text(one),
        "stood": max(1, one.stood_ms),
    }


def _row_names(members: Sequence[str]) -> dict[str, str]:
    """Return the name of each member's row, no two alike: short where that tells them apart."""
    ids = dict.fromkeys(members)
    shared = Counter(_short(one) for one in ids)
    taken = {WHOLE}
    names: dict[str, str] = {}
    for one in ids:
        name = _short(one) if shared[_short(one)] == 1 else one
        while name in taken:
            name = f"member {name}"
        taken.add(name)
        names[one] = name
    return names


def _short(member: str) -> str:
    """Return a member's name for an axis: the random id at its end says nothing to people."""
    return member if len(member) <= 20 else f"{member[:11]}...{member[-6:]}"


def _used(rebalances: Sequence[GroupRebalance]) -> list[Key]:
    counted = Counter(one.cause for one in rebalances)
    return keys({cause: COLOURS[cause] for cause in CAUSES if counted[cause]}, SHAPES)


def _standstills(rebalances: Sequence[GroupRebalance], span: tuple[int, int]) -> Plot:
    alt = load_altair()
    rows = [_whole(one) for one in rebalances]
    chart = (
        alt.Chart(data_of(rows))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(
            x=over_time("begin", span[1] - span[0]),
            y=over_waits(alt.Y, "stood", [row["stood"] for row in rows], "Stood still"),
            color=coloured("cause", COLOURS),
            shape=shaped("cause", SHAPES),
            tooltip=_tooltip("from", "cause", "why", "stood still"),
        )
    )
    text = "Each mark is a rebalance, from its begin until the group was stable or empty."
    return plot(chart, "How long the group stood still", text, 200, _used(rebalances))


def _causes(rebalances: Sequence[GroupRebalance]) -> Plot:
    alt = load_altair()
    counted = Counter(one.cause for one in rebalances)
    stood = Counter[str]()
    for one in rebalances:
        stood[one.cause] += one.stood_ms
    rows = [
        {"cause": cause, "rebalances": count, "stood still": length_text(stood[cause])}
        for cause, count in counted.most_common()
    ]
    chart = (
        alt.Chart(data_of(rows))
        .mark_bar(height={"band": 0.6})
        .encode(
            y=alt.Y("cause:N", sort=None, axis=alt.Axis(title=None, labelLimit=170, ticks=False)),
            x=alt.X("rebalances:Q", axis=alt.Axis(title="Rebalances", format="~s", tickMinStep=1)),
            color=coloured("cause", COLOURS),
            tooltip=_tooltip("cause", "rebalances", "stood still"),
        )
    )
    return plot(chart, "Causes", "What began the rebalances", 40 + 26 * len(rows))
