"""Alembic's entry: takes the missing steps, each in a transaction of its own, on `common.db.migrate`'s connection."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=True)
with context.begin_transaction():
    context.run_migrations()
