"""Divergence of a follower's log from its leader's: where to cut.  Pure.

The leader names the largest epoch that both may have and where it ends there.  Truncation goes by
epochs, never to the high watermark.
"""

from __future__ import annotations

from tarry.log.index.epoch_index import EpochIndex


def cut_offset(
    epochs: EpochIndex, start_offset: int, end_offset: int, epoch: int, leader_end_offset: int
) -> int:
    """Return where a log from `start_offset` to `end_offset` is to be cut, given that the leader's
    largest epoch up to ours is `epoch` and ends at `leader_end_offset` there.

    Our largest epoch e <= `epoch` ends here at o: if both are the same epoch, the shorter end
    counts; else nothing behind o is common, and the leader is asked again.
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
    """Return whether a log may lose what lies from `offset` on.

    What is below the high watermark was promised to somebody, and is given up only for a leader
    that an operator, or the topic's setting, has chosen all the same.
    """
    return offset >= high_watermark or last_epoch < unclean_epoch
