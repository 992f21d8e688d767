"""Sockets of clients, before HTTP: PROXY protocol, connection limits, lingering close, disconnect polling."""
