"""Delegated challenges: the label of each application and domain in the operator's zone, and what is answered there.

Owns the SQL of ``acme_delegations``. A label is unguessable and is never given anew, so that only the application that
was shown it can have a domain's owner set it. Edges answer the values (`edge.dns`).

A label is of a domain and of its wildcard, which have one challenge name: the values of both are answered there, and
``wildcard_values`` are those of them that are the wildcard's.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import base64
import secrets
from collections.abc import Collection

from common.db.session import Connection
from common.enrolment.ownership import REMEMBERED_DAYS
from common.names import base_of

_LABEL_BYTES = 20  # 32 characters
_NOT_OF_WILDCARD = "array(select v from unnest(challenge_values) v where v <> all(wildcard_values))"


async def mint(connection: Connection, domain: str, application_id: str) -> str:
    """Return the label of the application and domain, a new one where there is none.

    It is to be shown, so it is kept for another `REMEMBERED_DAYS`, whether anything needs it or not.
    """
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
    else:
        await connection.execute(
            f"update acme_delegations set review_at = now() + interval '{REMEMBERED_DAYS} days' where label = $1"
            f" and review_at < now() + interval '{REMEMBERED_DAYS - 1} days'",
            found,
        )
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


async def set_values(
    connection: Connection, domain: str, application_id: str, values: Collection[str]
) -> Collection[str]:
    """Have the edges answer these TXT values of a domain, or of a wildcard, at its label; none to end it.

    Return all that is answered at the label then, with the other's values.
    """
    row = await connection.fetchrow(
        f"update acme_delegations set {_set_sql(domain)} where domain = $1 and application_id = $3"
        " returning challenge_values",
        base_of(domain),
        list(values),
        application_id,
    )
    return () if row is None else tuple(row["challenge_values"])


async def end_values(connection: Connection, domain: str) -> None:
    """End the TXT values of a domain, or of a wildcard, whichever application's they are."""
    await connection.execute(
        f"update acme_delegations set {_set_sql(domain)} where domain = $1 and challenge_values <> '{{}}'",
        base_of(domain),
        [],
    )


async def find_other_values(connection: Connection, domain: str, application_id: str) -> Collection[str]:
    """Return what is answered at the label besides the domain's own: the wildcard's values, or those of its base."""
    found = await connection.fetchval(
        f"select {_others_sql(domain)} from acme_delegations where domain = $1 and application_id = $2",
        base_of(domain),
        application_id,
    )
    return tuple(found or ())


def _set_sql(domain: str) -> str:
    """Return assignments that keep the other's values. ``$2`` are the values."""
    is_wildcard = domain != base_of(domain)
    return f"challenge_values = {_others_sql(domain)} || $2::text[]" + (", wildcard_values = $2" if is_wildcard else "")


def _others_sql(domain: str) -> str:
    return "wildcard_values" if domain == base_of(domain) else _NOT_OF_WILDCARD
