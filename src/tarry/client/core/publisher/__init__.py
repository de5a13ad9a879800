"""Publisher: finished record batches under a producer id of the caller's, and the look back at
what is in the log of them."""
