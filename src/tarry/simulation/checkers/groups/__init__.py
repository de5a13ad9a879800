"""Checkers of groups: what a correct coordinator never lets its members see.

A member of the group is who was told so by SyncGroup; an offset is a register that is written by
commits and deletions and read by OffsetFetch.  `log_replay` and `rounds` look at the broker itself.
"""

from tarry.simulation.checkers.groups.checks import check_groups

__all__ = ["check_groups"]
