"""Checkers: what a correct broker never lets its clients see, told in sentences.

Each checker takes the history of a run and returns the sentences that are wrong with it.  The
letters in their comments name the anomalies of facts/correctness-rules (A1 to A34).
"""

from tarry.simulation.checkers.checks import check_history

__all__ = ["check_history"]
