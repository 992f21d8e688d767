"""Connections to origins: `pool` decides which request may have one (pure), `connector` makes them."""
