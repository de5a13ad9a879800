"""File of a pipeline: read, typed, and refused with each mistake at its line and key."""
