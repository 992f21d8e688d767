"""Alembic's entry: takes the missing steps in the transaction `common.db.migrate` has opened."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
