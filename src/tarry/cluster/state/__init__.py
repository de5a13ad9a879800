"""The state of a cluster, as its metadata records make it, with a view above it for decisions."""
