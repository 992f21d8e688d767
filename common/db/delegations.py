"""Delegated challenges: the label of each application and domain in the operator's zone, and what is answered there.

Owns the SQL of ``acme_delegations``. A label is unguessable and is never given anew, so that only the application that
was shown it can have a domain's owner set it. Edges answer the values (`edge.dns`).
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Collection

from common.db.session import Connection

_LABEL_BYTES = 20  # 32 characters


async def mint(connection: Connection, domain: str, application_id: str) -> str:
    """Return the label of the application and domain, a new one where there is none."""
    new = base64.b32encode(secrets.token_bytes(_LABEL_BYTES)).decode().lower()
    found = await find_label(connection, domain, application_id)
    if found is None:
        await connection.execute(
            "insert into acme_delegations (label, application_id, domain) values ($1, $2, $3)"
            " on conflict (application_id, domain) do nothing",
            new,
            application_id,
            domain,
        )
        found = await find_label(connection, domain, application_id)
    assert found is not None, "there is one from here on"
    return found


async def find_label(connection: Connection, domain: str, application_id: str) -> str | None:
    """Return the label of the application and domain, or None where none was made."""
    label: str | None = await connection.fetchval(
        "select label from acme_delegations where application_id = $1 and domain = $2", application_id, domain
    )
    return label


async def find_application(connection: Connection, label: str, domain: str) -> str | None:
    """Return the application that the label was made for, or None where it was made for another domain, or never."""
    application_id: str | None = await connection.fetchval(
        "select application_id from acme_delegations where label = $1 and domain = $2", label, domain
    )
    return application_id


async def set_values(connection: Connection, domain: str, application_id: str, values: Collection[str]) -> None:
    """Have the edges answer these TXT values at the label, none to end it."""
    await connection.execute(
        "update acme_delegations set challenge_values = $3"
        " where application_id = $1 and domain = $2 and challenge_values <> $3",
        application_id,
        domain,
        list(values),
    )
