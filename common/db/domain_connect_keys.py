"""The keys that sign Domain Connect requests. Owns the SQL of ``domain_connect_keys``.

One of them signs. During a rotation there is a second one, whose public part is being published.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from common.db.session import Connection


@dataclass(frozen=True, slots=True)
class SigningKey:
    """`label` is the DNS label that the public key is published at; `private_key` an envelope."""

    label: str
    private_key: bytes = field(repr=False)
    signs: bool


def key_identity(label: str) -> str:
    """Of the envelope."""
    return f"domain-connect/{label}/request-key"


async def lock(connection: Connection) -> None:
    """Alone until the end of the transaction; keys are still read."""
    await connection.execute("lock table domain_connect_keys in share row exclusive mode")


async def list_keys(connection: Connection) -> list[SigningKey]:
    """The oldest first."""
    rows = await connection.fetch("select label, private_key, signs from domain_connect_keys order by number")
    return [SigningKey(**row) for row in rows]


async def find_signing(connection: Connection) -> SigningKey | None:
    row = await connection.fetchrow("select label, private_key, signs from domain_connect_keys where signs")
    return None if row is None else SigningKey(**row)


async def next_number(connection: Connection) -> int:
    """That no key has had before."""
    number: int = await connection.fetchval("select coalesce(max(number), 0) + 1 from domain_connect_keys")
    return number


def label_of(number: int) -> str:
    return f"_dck{number}"


async def add(connection: Connection, number: int, private_key: bytes, *, signs: bool) -> None:
    await connection.execute(
        "insert into domain_connect_keys (number, label, private_key, signs) values ($1, $2, $3, $4)",
        number,
        label_of(number),
        private_key,
        signs,
    )


async def sign_with(connection: Connection, label: str) -> None:
    """From now on this key signs; the others are gone. In the caller's transaction."""
    await connection.execute("delete from domain_connect_keys where label <> $1", label)
    await connection.execute("update domain_connect_keys set signs = true where label = $1", label)
