"""Buckets: groups of keys whose state Spark keeps together, so that one question answers for many.

Spark asks a stateful step once for each grouping key and micro-batch, and each question costs a
round trip between its Java process and a Python worker.  So the grouping key is one of a fixed
number of buckets, and the rows of a bucket come as chunks of Arrow.
"""
