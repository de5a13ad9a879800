"""Producing: records are collected in batches, and batches are sent to the leaders."""
