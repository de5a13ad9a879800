"""Checkers of what a correct broker never lets its clients see; each violation is a sentence.

Each checker takes the history of a run and returns the sentences that are wrong with it.  Their
comments name anomalies by number:

A1   lost write: acknowledged, others read past it, nobody has ever read it
A2   unseen: acknowledged, and not read when all is quiet
A3   duplicate: a value of an idempotent producer at two offsets
A4   an offset with two values, over all sends and reads, restarts included
A11  acknowledged sends of one producer whose offsets decrease
A13  an acknowledgement with an invalid offset
A14  a loss where nothing went wrong
A23  acknowledged data lost to a crash, a loss of power, a fault of the disk
A27  a high watermark that goes back; a record that was read and is gone
A29  metadata: an acknowledged change that is lost; a topic taken for its predecessor
A33  a log start offset that goes back
"""

from tarry.simulation.checkers.checks import check_history

__all__ = ["check_history"]
