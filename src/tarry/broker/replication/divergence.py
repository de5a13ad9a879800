"""Divergence of a follower's log from its leader's: the offset at which to cut.  Pure.

The leader's answer has the largest epoch that both logs may have, and its end in the leader's log.
Truncation goes by epochs, and not to the high watermark.
"""

from __future__ import annotations

from tarry.log.index.epoch_index import EpochIndex


def cut_offset(
    epochs: EpochIndex, start_offset: int, end_offset: int, epoch: int, leader_end_offset: int
) -> int:
    """Return the offset at which to cut a log from `start_offset` to `end_offset`.

    `epoch` is the leader's largest epoch up to our last one, and ends at `leader_end_offset` there.
    Our largest epoch up to `epoch` ends here at some offset.  If both are the same epoch, the lower
    end counts.  Otherwise nothing behind our end is common, and the leader is asked again.
    """
    own_epoch, own_end = -1, start_offset
    for place in range(len(epochs.epochs) - 1, -1, -1):
        if epochs.epochs[place] <= epoch:
            own_epoch = epochs.epochs[place]
            is_last = place + 1 == len(epochs.epochs)
            own_end = end_offset if is_last else epochs.start_offsets[place + 1]
            break
    if own_epoch == epoch:
        own_end = min(own_end, leader_end_offset)
    return max(min(own_end, end_offset), start_offset)


def may_cut(offset: int, high_watermark: int, last_epoch: int, unclean_epoch: int) -> bool:
    """Return whether a log may lose its records from `offset` on.

    Records below the high watermark may have been acknowledged.  They are given up only for a
    leader that an operator, or the topic's setting, has elected uncleanly.
    """
    return offset >= high_watermark or last_epoch < unclean_epoch
