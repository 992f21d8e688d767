"""Orders: the work of getting, keeping and renewing a domain's certificate, one row a domain.

Owns the SQL of ``orders``. The row is claimed work (`common.claims`): it says by itself what is due and when.

States, and what a row that comes due in one of them asks for
    running   a certificate is wanted: issue it. Edges hold handshakes until ``hold_until``
    failed    tried several times in vain: still tried, ever more slowly, but nobody is held any more
    issued    there is a certificate: wait until every edge serves it; once that is so, renew it

A row disappears with its domain (`common.db.certificates.release`). Fences are transaction ids, so a row that
was deleted and made anew never gets a fence its old holder knows.
"""

from __future__ import annotations

from asyncpg import Connection, Record

from common.db import certificates


async def request_order(
    connection: Connection[Record], domain: str, application_id: str, *, hold_seconds: float
) -> None:
    """Lead to a live certificate, in the transaction that enrols the domain.

    A certificate in service is left alone; a kept one of the same application is adopted (its order only
    waits until the edges serve it); else one is ordered, and edges hold handshakes for `hold_seconds`.
    An order that already runs is not started over.
    """
    await certificates.lock_domain(connection, domain)
    if await certificates.is_in_service(connection, domain, application_id):
        return
    adopted = await certificates.adopt(connection, domain, application_id)
    state = "issued" if adopted else "running"
    await connection.execute(
        "delete from orders where domain = $1 and (application_id <> $2 or state <> 'running')",
        domain,
        application_id,
    )
    await connection.execute(
        "insert into orders (domain, application_id, state, hold_until, due_at)"
        " values ($1, $2, $3, now() + make_interval(secs => $4), now())"
        " on conflict (domain) do update set hold_until = excluded.hold_until, due_at = excluded.due_at",
        domain,
        application_id,
        state,
        hold_seconds,
    )
