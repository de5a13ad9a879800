"""Producing: records gathered into batches, and the batches brought to their leaders."""
