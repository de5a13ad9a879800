"""Reading for Spark: what is asked for, which offsets that is, how tasks share them, and rows."""
