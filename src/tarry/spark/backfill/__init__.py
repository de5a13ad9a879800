"""Backfill: windows of a pipeline's aggregate computed again, out of an archive.

A stream writes a window's result once and leaves out what comes later.  The job reads every record
of the clean topic, from the archive and, where that ends, from the broker, computes the windows
that the stream is done with, and writes those results that differ from what their topic has.

A run is frozen at its start: offsets, windows, rounds.  Round N goes through `spark/writing` as
micro-batch N, so plan, publish and mark are those of streams.
"""
