"""Checkers of groups: what a correct coordinator never lets its members see.

A client is a member of a group once SyncGroup said so.  A committed offset is a register: commits
and deletions write it, OffsetFetch reads it.  `log_replay` and `rounds` look at the broker itself.
"""

from tarry.simulation.checkers.groups.checks import check_groups

__all__ = ["check_groups"]
