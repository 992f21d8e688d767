"""HTTP/2 without a socket: conformance by section, budgets, and differential tests."""
