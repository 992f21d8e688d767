"""What signs a user in ends when the user gains rights, and what an API key made ends with the key."""

from __future__ import annotations

from common.db.migrations.scripts import add_columns, create_indexes

revision = "0069"
down_revision = "0068"


def upgrade() -> None:
    add_columns({"users": "credentials_ended_at timestamptz"})
    add_columns({"sessions": "has_ended boolean not null default false"})
    add_columns({"sessions": "by_key text references user_keys on delete cascade"})
    add_columns({"sign_in_links": "by_key text references user_keys on delete cascade"})
    create_indexes(
        {
            "sessions_by_key": "on sessions (by_key) where by_key is not null",
            "sign_in_links_by_key": "on sign_in_links (by_key) where by_key is not null",
        }
    )
