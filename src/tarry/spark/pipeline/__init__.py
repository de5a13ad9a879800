"""Pipeline: what one file describes, from topics to clean topics and an archive.

`file` reads it, `stages` makes a list of stages from it, `queries` makes queries of Spark,
`supervisor` keeps them running, and `run` puts all of it together.
"""
