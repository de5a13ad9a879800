"""Backfill: windows of a pipeline's aggregate computed again, out of an archive.

A stream writes a window's result once and leaves out what comes later.  The job reads every record
of the clean topic, from the archive and, where that ends, from the broker, computes the windows
that the stream is done with, and writes those results that differ from what their topic has.

A run is frozen at its start: offsets and windows.  Its results go through `spark/writing` as one
micro-batch, so plan, publish and mark are those of streams.
"""
