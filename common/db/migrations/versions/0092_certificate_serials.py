"""Certificates are found by serial number, authority and first day, and carry a request for their replacement."""

from __future__ import annotations

from cryptography import x509

from common.db.certificates import describe_leaf
from common.db.migrations.scripts import add_columns, create_indexes
from common.db.session import Connection

_AT_ONCE = 500


async def take(connection: Connection) -> None:
    """Add the columns and indexes, and read the chains that are stored."""
    for column in ("serial text", "authority text", "replace_requested_at timestamptz"):
        await add_columns(connection, {"certificates": column})
    await _fill(connection)
    served = "where released_at is null"
    await create_indexes(
        connection,
        {
            "certificates_by_serial": f"on certificates (serial) {served}",
            "certificates_by_authority": f"on certificates (authority, not_before, domain) {served}",
            "certificates_by_start": f"on certificates (not_before, domain) {served}",
            "certificates_to_replace": "on certificates (replace_requested_at) where replace_requested_at is not null",
        },
    )


async def _fill(connection: Connection) -> None:
    """Fill the columns of certificates of before, in the order of their keys; one that cannot be read has none."""
    after = ("", "")
    while rows := await connection.fetch(
        "select domain, application_id, chain from certificates where (domain, application_id) > ($1, $2)"
        " and serial is null order by domain, application_id limit $3",
        *after,
        _AT_ONCE,
    ):
        after = rows[-1]["domain"], rows[-1]["application_id"]
        read = []
        for row in rows:
            try:
                leaf = x509.load_pem_x509_certificate(row["chain"].encode())
            except ValueError:
                continue
            read.append((row["domain"], row["application_id"], *describe_leaf(leaf)))
        await connection.executemany(
            "update certificates set serial = $3, authority = $4"
            " where domain = $1 and application_id = $2 and serial is null",
            read,
        )
