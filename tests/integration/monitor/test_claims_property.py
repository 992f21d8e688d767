"""After any sequence of steps, at most one certificate of an order is in service, and in the end exactly one."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from common.db import certificates, order_outcomes, order_queue
from common.db.pool import Database
from common.errors import FenceLost

from . import parts
from .parts import APPLICATION, DOMAIN, OTHER_APPLICATION

steps = st.one_of(
    st.tuples(st.just("power"), st.sampled_from([APPLICATION, OTHER_APPLICATION])),
    st.tuples(st.sampled_from(["remove", "lapse", "come due"]), st.just("")),
    st.tuples(st.sampled_from(["claim", "issue", "record live", "fail"]), st.sampled_from(["0", "1"])),
)


@dataclass
class Story:
    """The rows, and beside them what they should come to. Two workers; `holder` has the last fence."""

    database: Database
    owner: str | None = None
    claims: dict[str, order_queue.Order] = field(default_factory=dict)
    holder: str | None = None
    issued: int = 0

    async def take(self, step: str, worker: str) -> None:
        if step == "power" and self.owner is None:
            await parts.power(self.database, application_id=worker)
            self.owner = worker
        elif step == "remove" and self.owner is not None:
            await parts.remove(self.database)
            self.owner = self.holder = None
        elif step == "lapse":
            await self.execute("update orders set lease_until = now() where lease_until is not null")
        elif step == "come due":
            await self.execute("update orders set due_at = now()")
        elif step == "claim":
            await self.claim(worker)
        elif step in ("issue", "record live", "fail") and worker in self.claims:
            await self.work(step, worker)

    async def execute(self, statement: str) -> None:
        async with self.database.transaction() as connection:
            await connection.execute(statement)

    async def claim(self, worker: str) -> bool:
        async with self.database.transaction() as connection:
            claimed = await order_queue.claim(connection, most=1, lease_seconds=60)
        if claimed:
            assert self.owner == claimed[0].application_id
            self.claims[worker] = claimed[0]
            self.holder = worker
        return bool(claimed)

    async def work(self, step: str, worker: str) -> None:
        claim = self.claims[worker]
        before = await self.rows()
        try:
            async with self.database.transaction() as connection:
                if step == "issue":
                    await order_outcomes.record_issued(connection, claim, a_certificate(self.issued), {})
                elif step == "record live":
                    await order_outcomes.record_live(connection, claim, datetime.now(UTC) + timedelta(days=60), {})
                else:
                    await order_queue.postpone(connection, claim, delay_seconds=0, last_error="failed")
        except FenceLost:
            assert worker != self.holder
        if worker != self.holder:
            assert await self.rows() == before
        if step == "issue":
            self.issued += 1
        else:
            del self.claims[worker]

    async def rows(self) -> object:
        return [
            await parts.fetch(self.database, f"select * from {table} order by 1, 2")
            for table in ("orders", "certificates")
        ]

    async def in_service(self) -> list[str]:
        rows = await parts.fetch(
            self.database, "select application_id from certificates where released_at is null and domain = $1", DOMAIN
        )
        return [row["application_id"] for row in rows]


def a_certificate(number: int) -> certificates.Certificate:
    now = datetime.now(UTC)
    return certificates.Certificate("internal", f"chain {number}", b"key", now, now + timedelta(days=90))


@settings(max_examples=40)
@given(st.lists(steps, max_size=25))
async def test_any_story_ends_with_one_certificate_of_the_owner(
    database: Database, story: list[tuple[str, str]]
) -> None:
    async with database.transaction() as connection:
        for table in ("orders", "certificates", "domains", "applications"):
            await connection.execute(f"delete from {table}")
    for application in (APPLICATION, OTHER_APPLICATION):
        await parts.add_application(database, application)
    subject = Story(database)
    for step, worker in story:
        await subject.take(step, worker)
        assert await subject.in_service() in ([], [subject.owner])

    await subject.take("lapse", "")
    await subject.take("come due", "")
    while await subject.claim("0"):  # a worker without failures
        if subject.claims["0"].state != "issued":
            await subject.work("issue", "0")
        await subject.work("record live", "0")
    assert await subject.in_service() == ([subject.owner] if subject.owner else [])
    order = await parts.order_of(database)
    assert (order and (order["state"], order["lease_until"], order["attempts"])) == (
        ("issued", None, 0) if subject.owner else None
    )
