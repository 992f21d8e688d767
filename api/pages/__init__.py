"""Plain pages for people without an account: escaped, nothing loaded from elsewhere; only the handbook has a script."""
