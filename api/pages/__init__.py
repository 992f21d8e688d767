"""Plain pages for people without an account: escaped, without scripts, and nothing loaded from anywhere."""
