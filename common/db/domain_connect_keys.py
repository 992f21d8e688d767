"""The keys that sign Domain Connect requests. Owns the SQL of ``domain_connect_keys``.

One of them signs. During a rotation there is a second one, whose public part is being published.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from common.db.session import Connection


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key for Domain Connect requests: `label` is the DNS label of its public part, `private_key` an envelope."""

    label: str
    private_key: bytes = field(repr=False)
    signs: bool


def key_identity(label: str) -> str:
    """Return the identity under which the key is sealed."""
    return f"domain-connect/{label}/request-key"


async def lock(connection: Connection) -> None:
    """Keep other transactions from changing the keys until this one ends; they are still read."""
    await connection.execute("lock table domain_connect_keys in share row exclusive mode")


async def list_keys(connection: Connection) -> list[SigningKey]:
    """Return the keys, the oldest first."""
    rows = await connection.fetch("select label, private_key, signs from domain_connect_keys order by number")
    return [SigningKey(**row) for row in rows]


async def find_signing(connection: Connection) -> SigningKey | None:
    """Return the key that signs requests now, or None if there is none."""
    row = await connection.fetchrow("select label, private_key, signs from domain_connect_keys where signs")
    return None if row is None else SigningKey(**row)


async def next_number(connection: Connection) -> int:
    """Return a number that none of the stored keys has, for `add`."""
    number: int = await connection.fetchval("select coalesce(max(number), 0) + 1 from domain_connect_keys")
    return number


def label_of(number: int) -> str:
    """Return the DNS label at which the key with this number is published."""
    return f"_dck{number}"


async def add(connection: Connection, number: int, private_key: bytes, *, signs: bool) -> None:
    """Store a key; `private_key` is an envelope."""
    await connection.execute(
        "insert into domain_connect_keys (number, label, private_key, signs) values ($1, $2, $3, $4)",
        number,
        label_of(number),
        private_key,
        signs,
    )


async def sign_with(connection: Connection, label: str) -> None:
    """Sign requests with this key from now on, and delete the others. Needs a transaction."""
    await connection.execute("delete from domain_connect_keys where label <> $1", label)
    await connection.execute("update domain_connect_keys set signs = true where label = $1", label)
