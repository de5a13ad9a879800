"""Replay: records of an archive go back to a topic, each exactly once.

A replay is frozen when it is first started: which offsets, to where.  It takes rounds; the offsets
of each are written down before anybody reads them, and a round goes through the sink of streams
(`tarry.spark.writing`) as its micro-batch of the same number.
"""
