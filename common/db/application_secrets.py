"""The secrets of applications in their rows of ``applications``: sealed, and replaced with a time in which both work.

Rules
    During a rotation the previous client secret opens tokens too, until ``previous_expires_at``, and the previous
    signature key signs too, until ``previous_signature_until``; the same holds for webhook secrets.
    ``next_service_auth`` is made before edges send it, so that origins can accept it first; finishing the rotation puts
    it in the place of ``service_auth``.

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from datetime import timedelta

from asyncpg import Connection, Record


def client_secret_identity(application_id: str) -> str:
    """Return the identity under which the current and the previous client secret are sealed."""
    return f"application/{application_id}/client-secret"


def webhook_secret_identity(application_id: str) -> str:
    """Return the identity under which the current and the previous webhook secret are sealed."""
    return f"application/{application_id}/webhook-secret"


def service_auth_identity(application_id: str) -> str:
    """Return the identity under which the X-Service-Auth value that edges send, and the next one, are sealed."""
    return f"application/{application_id}/service-auth"


def signature_key_identity(application_id: str) -> str:
    """Return the identity under which the current and the previous signature key are sealed."""
    return f"application/{application_id}/signature-key"


def is_of_living_secret(table: str) -> str:
    """Return the SQL condition that no client secret, or one that still opens tokens, signed what made the row."""
    return (
        f"({table}.secret_generation is null or {table}.secret_generation >= (select secret_generation"
        " - case when previous_expires_at > now() then 1 else 0 end from applications"
        f" where id = {table}.application_id))"
    )


_MADE_BY_TOKENS = ("shares", "connect_flows", "connect_configurations")


async def rotate_client_secret(
    connection: Connection[Record],
    application_id: str,
    sealed: bytes,
    keep_previous_for: timedelta,
    *,
    keeps_links: bool = False,
) -> bool:
    """Replace the client secret by `sealed`, and return whether the application exists.

    The old secret keeps opening tokens for `keep_previous_for`; zero ends it at once. With it end the links, flows and
    registered configurations that its tokens made, unless `keeps_links`.
    """
    await connection.execute("select from applications where id = $1 for no key update", application_id)
    for table in _MADE_BY_TOKENS if keeps_links else ():
        await connection.execute(
            f"update {table} set secret_generation = (select secret_generation + 1 from applications where id = $1)"
            f" where application_id = $1 and secret_generation is not null and {is_of_living_secret(table)}",
            application_id,
        )
    status = await connection.execute(
        "update applications set client_secret = $2, previous_client_secret = client_secret,"
        " previous_expires_at = now() + $3, secret_generation = secret_generation + 1 where id = $1",
        application_id,
        sealed,
        keep_previous_for,
    )
    return bool(status == "UPDATE 1")


async def rotate_webhook_secret(
    connection: Connection[Record], application_id: str, sealed: bytes, keep_previous_for: timedelta
) -> bool:
    """Sign webhooks with `sealed` from now on, and return whether the application exists.

    The secret so far signs beside the new one for `keep_previous_for`, so that receivers can change over.
    """
    status = await connection.execute(
        "update applications set webhook_secret = $2, previous_webhook_secret = webhook_secret,"
        " previous_webhook_until = now() + $3 where id = $1",
        application_id,
        sealed,
        keep_previous_for,
    )
    return bool(status == "UPDATE 1")


async def set_signature_key(
    connection: Connection[Record], application_id: str, sealed: bytes | None, keep_previous_for: timedelta
) -> bool:
    """Sign forwarded requests with `sealed` from now on (None: no longer), and return whether the application exists.

    The key so far signs beside the new one for `keep_previous_for`, so that origins can change over.
    """
    status = await connection.execute(
        "update applications set signature_key = $2,"
        " previous_signature_key = case when $2::bytea is not null then signature_key end,"
        " previous_signature_until = case when $2 is not null and signature_key is not null then now() + $3 end"
        " where id = $1",
        application_id,
        sealed,
        keep_previous_for,
    )
    return bool(status == "UPDATE 1")
