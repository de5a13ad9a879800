"""Publisher: sends finished record batches under the caller's producer id, and looks up which of
them are in the log."""
