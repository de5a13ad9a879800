"""Scheduled records for an admin client: listing, cancelling and moving them."""
