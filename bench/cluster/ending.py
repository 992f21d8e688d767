"""What is there when all is repaired: at Postgres' servers, at the edges, at the CA and at the receiver of webhooks."""

from __future__ import annotations

import asyncio
import contextlib
import re
from typing import Any

import aiohttp

from bench.cluster.checker import Verdict
from bench.cluster.clients import Clients
from bench.cluster.history import History
from bench.cluster.patroni import ask
from bench.cluster.world import ClusterWorld
from common.errors import DatabaseUnavailable

_REST_SECONDS = 180.0
_POLL_SECONDS = 0.5
_TABLES = ("domains", "certificates", "orders", "events", "deliveries", "changes", "audit")
_AT_WORK = (
    "select (select count(*) from orders left join certificates"
    " on certificates.domain = orders.domain and released_at is null"
    " where state <> 'issued' or lease_until is not null or live_at is null or live_at < issued_at)"
    " + (select count(*) from deliveries where status = 'pending')"
)
_HURRY = (
    "update orders set due_at = now() where state <> 'issued' and lease_until is null and due_at > now()",
    "update deliveries set due_at = now() where status = 'pending' and due_at > now()",
    "update webhook_endpoints set due_at = now() where due_at > now()",
)
_EDGES = (
    "select count(*) from edge_nodes, feed where lease_until > now() and state = 'serving'"
    " and edge_nodes.version = feed.version"
)


async def agree(world: ClusterWorld, history: History) -> None:
    """Agree, as an operator does, with copies that lack many routes: after a lost tail they are right."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5.0)) as session:
        for edge in world.edges:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                async with session.post(f"http://{edge.process.settings.edge_admin}/replica/accept") as answer:
                    if answer.status == 200:
                        history.held.append(f"{history.now:.2f} {edge.name}")


async def come_to_rest(world: ClusterWorld, history: History, verdict: Verdict, *, is_lossless: bool) -> None:
    """Wait until no order and no delivery is under way, and every edge has a lease and has applied everything."""
    verdict.ask("work that nobody does")
    verdict.ask("leases")
    for question, query, wanted in (
        ("work that nobody does", _AT_WORK, 0),
        ("leases", _EDGES, len(world.edges)),
    ):
        found: Any = "no answer"
        try:
            async with asyncio.timeout(_REST_SECONDS):
                while found != wanted:
                    await agree(world, history)
                    found = await _ask(world, query)
                    await asyncio.sleep(_POLL_SECONDS)
        except TimeoutError:
            verdict.add(question, f"{found} after {_REST_SECONDS:g} seconds, {wanted} is right")
    verdict.figures["copies of edges that waited for the operator"] = f"{len(history.held)}"
    if is_lossless and history.held:
        verdict.add("replicas", f"edges had applied what the database lost: {', '.join(history.held)}")


async def _ask(world: ClusterWorld, query: str) -> Any:
    try:
        async with world.database.transaction() as connection:
            for statement in _HURRY:
                await connection.execute(statement)
            return await connection.fetchval(query)
    except DatabaseUnavailable:
        return "no answer"


async def judge_ending(clients: Clients, verdict: Verdict, *, is_lossless: bool) -> None:
    """Judge certificates, webhooks, replicas, and what each edge serves."""
    world = clients.world
    async with world.database.connection() as connection:
        enrolled = {row["domain"]: row["application_url"] for row in await connection.fetch("select * from domains")}
        rows = await connection.fetch(
            "select domain, count(*) as n from certificates where released_at is null and not_after > now() group by 1"
        )
        events = await connection.fetch(
            "select id, coalesce(status, '') as status from events left join deliveries on event_id = events.id"
        )
        placed = await connection.fetch("select state, count(*) as n from ca_ledger where kind = 'order' group by 1")
        ledger = {row["state"]: row["n"] for row in placed}
    valid = {row["domain"]: row["n"] for row in rows}
    _judge_certificates(clients, verdict, enrolled, valid, ledger, is_lossless=is_lossless)
    _judge_webhooks(world, verdict, {row["id"]: row["status"] for row in events}, is_lossless=is_lossless)
    await _judge_edges(clients, verdict, enrolled)
    await _judge_servers(world, verdict)


def _judge_certificates(
    clients: Clients,
    verdict: Verdict,
    enrolled: dict[str, str],
    valid: dict[str, int],
    ledger: dict[str, int],
    *,
    is_lossless: bool,
) -> None:
    """Judge that each domain has one certificate, and that the CA was asked for no more than was counted."""
    question = "certificates"
    verdict.ask(question)
    for domain in sorted(enrolled.keys() | valid.keys()):
        if (domain in enrolled) != (valid.get(domain, 0) == 1):
            verdict.add(
                question, f"{domain} has {valid.get(domain, 0)}, and is {'' if domain in enrolled else 'not '}enrolled"
            )
    made = max(map(int, re.findall(r"There are now (\d+) orders in the db", clients.world.pebble.log())), default=0)
    counted = sum(ledger.values())
    if is_lossless and not ledger.get("placed", 0) <= made <= counted:  # else a lost tail may have had some
        verdict.add(question, f"Pebble made {made} orders, the ledger has {ledger}")
    posts = sum(each.detail.startswith("POST") for each in clients.history.of("write"))
    faults = len(clients.history.faults)
    if made > posts + faults:
        verdict.add(question, f"Pebble made {made} orders for {posts} enrolments and {faults} faults")
    verdict.figures["enrolments, orders at Pebble, in the ledger"] = f"{posts}, {made}, {counted}"


def _judge_webhooks(world: ClusterWorld, verdict: Verdict, events: dict[str, str], *, is_lossless: bool) -> None:
    """Judge that each event arrived, and nothing that is none, unless a lost tail had it."""
    verdict.ask("webhooks")
    received = [delivery.headers.get("webhook-id", "") for delivery in world.sink.deliveries]
    for event, status in events.items():
        if event not in received and status != "superseded":
            verdict.add("webhooks", f"{event} never arrived: {status or 'it has no delivery'}")
    for stranger in set(received) - set(events) if is_lossless else ():
        verdict.add("webhooks", f"{stranger} arrived, and is no event")
    verdict.figures["events, and webhooks received"] = f"{len(events)}, {len(received)}"


async def _judge_edges(clients: Clients, verdict: Verdict, enrolled: dict[str, str]) -> None:
    """Compare what each edge serves with what the API says and Postgres holds."""
    verdict.ask("replicas")
    for domain in (*clients.steady, *clients.churned):
        operation = clients.history.begin("partner", "read", domain)
        await clients.read(operation)
        held = enrolled[domain].rpartition("/")[2] if domain in enrolled else None
        if operation.value != held:
            verdict.add("replicas", f"the API has {operation.value} for {domain}, Postgres {held}: {operation}")
        for edge in clients.world.edges:
            visit = await clients.visit_once(edge, domain)
            if visit.value != held:
                verdict.add("replicas", f"Postgres has {held} for {domain}: {visit}")


async def _judge_servers(world: ClusterWorld, verdict: Verdict) -> None:
    """Compare the content of all servers of Postgres, once the standbys have replayed everything."""
    for table in _TABLES:
        query = f"select md5(coalesce(string_agg(t::text, ',' order by t::text), '')) from {table} t"
        found: dict[str, Any] = {}
        try:
            async with asyncio.timeout(30):
                while len(set(found.values())) != 1:
                    found = {member.name: await ask(member, query) for member in world.postgres.members}
        except (TimeoutError, DatabaseUnavailable) as error:
            verdict.add("replicas", f"{table} differs between the servers: {found} {error}")
