"""Connections to origins: `pool` decides which request may have one, `connector` makes them."""
