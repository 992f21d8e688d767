"""What to do with a request: forward it (rewritten), redirect it, answer it, or refuse it."""
