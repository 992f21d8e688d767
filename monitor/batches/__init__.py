"""Batches: bulk requests, worked off item by item."""
