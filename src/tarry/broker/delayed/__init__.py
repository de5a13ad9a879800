"""The delayed operations: a produce waits until it is durable, a fetch waits for bytes."""
