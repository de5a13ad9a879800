"""Limits: how much of what is left one micro-batch takes of each partition; pure."""

from __future__ import annotations

from collections.abc import Mapping

from tarry.base.ids import TopicPartition


def share_out(
    left: Mapping[TopicPartition, int], limit: int, turn: int
) -> dict[TopicPartition, int]:
    """Return how many records each partition gives, `limit` together at most, by what is left.

    No partition with records starves: each gives one where the limit suffices; where it does not,
    as many as there may be give one, and `turn`, which grows by what was read, says where to begin.
    """
    waiting = [place for place in sorted(left) if left[place] > 0]
    total = sum(left[place] for place in waiting)
    if total <= limit:
        return {place: left[place] for place in waiting}
    count = len(waiting)
    if limit <= count:
        begin = turn % count
        return dict.fromkeys((waiting[begin:] + waiting[:begin])[:limit], 1)
    # Everybody gives one; the rest is shared by what is left then, and what division loses goes to
    # the first ones.
    more = limit - count
    shares = {place: 1 + (left[place] - 1) * more // (total - count) for place in waiting}
    lost = limit - sum(shares.values())
    for place in waiting:
        given = min(lost, left[place] - shares[place])
        shares[place] += given
        lost -= given
    return shares
