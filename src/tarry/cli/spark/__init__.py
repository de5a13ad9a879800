"""Commands of `tarry spark`: jobs on Spark, which keep topics as tables."""
