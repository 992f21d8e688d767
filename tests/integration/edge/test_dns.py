"""The delegated zone of a running edge: from a row in Postgres to an answer, and while Postgres is away."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import dns.asyncquery
import dns.exception
import dns.message
import dns.rcode
import pytest

from bench.lab.ports import free_ports
from common.db.pool import Database
from common.secrets import Keyring
from tests import rows
from tests.component.edge_process import EdgeProcess, ask, real_edge
from tests.integration.edge.test_role import NOWHERE
from tests.waiting import until

LABEL = "abcdefghijklmnopqrstuvwxyz"
ZONE = "acme.frontage.example"
VALUE = "gfj9Xq-Rg85nM"


@pytest.fixture
async def edge(tmp_path: Path, dsn: str, keyring: Keyring) -> AsyncIterator[EdgeProcess]:
    (port,) = free_ports(1)
    named = {"FRONTAGE_EDGE_DNS": f"127.0.0.1:{port}", "FRONTAGE_ACME_DNS_ZONE": ZONE}
    with real_edge(tmp_path, workers=1, FRONTAGE_DATABASE_URL=dsn, **named) as process:
        yield process


async def look_up(edge: EdgeProcess, *, over_tcp: bool = False) -> tuple[dns.rcode.Rcode, list[str]]:
    """What the edge answers for the label."""
    port = int(edge.environ["FRONTAGE_EDGE_DNS"].rpartition(":")[2])
    query = dns.message.make_query(f"{LABEL}.{ZONE}", "TXT")
    ask_over = dns.asyncquery.tcp if over_tcp else dns.asyncquery.udp
    message = await ask_over(query, "127.0.0.1", timeout=1, port=port)
    return message.rcode(), [record.to_text().strip('"') for found in message.answer for record in found]


async def answers(edge: EdgeProcess, code: dns.rcode.Rcode, *values: str) -> bool:
    return await look_up(edge) == (code, [*values])


async def set_values(database: Database, *values: str) -> None:
    async with database.transaction() as connection:
        await rows.add_application(connection)
        await connection.execute(
            "insert into acme_delegations (label, application_id, domain, challenge_values)"
            " values ($1, 'app', 'shop.customer.example', $2)"
            " on conflict (label) do update set challenge_values = excluded.challenge_values",
            LABEL,
            list(values),
        )


async def test_values_of_a_running_order_are_answered_until_it_ends(edge: EdgeProcess, database: Database) -> None:
    await set_values(database)
    await edge.start()
    assert await look_up(edge) == (dns.rcode.NXDOMAIN, [])
    await set_values(database, VALUE)
    await until(partial(answers, edge, dns.rcode.NOERROR, VALUE), pending=(dns.exception.Timeout,))
    assert await look_up(edge, over_tcp=True) == (dns.rcode.NOERROR, [VALUE])
    await set_values(database)
    await until(partial(answers, edge, dns.rcode.NXDOMAIN), pending=(dns.exception.Timeout,))
    assert 'frontage_edge_dns_questions_total{outcome="answered"}' in await ask(edge.admin, "/metrics")


async def test_edge_that_starts_without_postgres_answers_what_it_has_stored(
    edge: EdgeProcess, database: Database
) -> None:
    await set_values(database, VALUE)
    await edge.start()
    await until(partial(answers, edge, dns.rcode.NOERROR, VALUE), pending=(dns.exception.Timeout,))
    edge.end()
    edge.launch(FRONTAGE_DATABASE_URL=NOWHERE)
    await until(
        partial(answers, edge, dns.rcode.NOERROR, VALUE), pending=(dns.exception.Timeout, ConnectionRefusedError)
    )
    unknown = dns.message.make_query(f"other.{ZONE}", "TXT")
    port = int(edge.environ["FRONTAGE_EDGE_DNS"].rpartition(":")[2])

    async def is_failure() -> bool:
        return (await dns.asyncquery.udp(unknown, "127.0.0.1", timeout=1, port=port)).rcode() == dns.rcode.SERVFAIL

    await until(is_failure, "an edge that is cut off does not state that a name is absent")


async def test_sockets_that_systemd_holds_answer_and_outlive_the_edge(edge: EdgeProcess, database: Database) -> None:
    await set_values(database, VALUE)
    edge.hold_sockets("http", "https")
    edge.hold_dns_sockets(int(edge.environ["FRONTAGE_EDGE_DNS"].rpartition(":")[2]))
    await edge.start()
    await until(partial(answers, edge, dns.rcode.NOERROR, VALUE), pending=(dns.exception.Timeout,))
    assert await look_up(edge, over_tcp=True) == (dns.rcode.NOERROR, [VALUE])
    edge.signal(signal.SIGKILL)
    await edge.ended()
    await until(lambda: not edge.living())
    await edge.start()
    await until(partial(answers, edge, dns.rcode.NOERROR, VALUE), pending=(dns.exception.Timeout,))
    assert await look_up(edge, over_tcp=True) == (dns.rcode.NOERROR, [VALUE])
