"""Writing: DataFrames become records of topics, in batches and in streams, the latter exactly once.

`plan` is the frozen micro-batch, `effects` and `steps` the way from a micro-batch's files to its
records in the topics, pure; `directory` and `publishing` carry the steps out.
"""
