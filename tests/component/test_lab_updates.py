"""RFC 2136 updates of the lab's zone, as a flow of the connect modal sends them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from ipaddress import ip_network

import dns.message
import dns.rcode
import pytest

from api.connect.dynamic_update import DynamicUpdate
from bench.lab.server import NameServer
from bench.lab.updates import UpdateKey
from bench.lab.zone import Zone
from common.addresses import AddressPolicy
from common.connect.ways.problems import WayFailed
from common.dns import Resolver
from common.dynamic_updates import ServerSilent, new_update, read_key, send_update
from common.flows.plan import Action, Change
from common.host_ports import HostPort
from common.records import RecordType

APEX = "customer.test"
SHOP = f"shop.{APEX}"
LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())


def change(action: Action, kind: RecordType, before: tuple[str, ...], after: tuple[str, ...]) -> Change:
    return Change(action, SHOP, "shop", kind, before, after, 300, 300, "")


MOVE = (
    change("remove", "A", ("192.0.2.1", "192.0.2.2"), ()),
    change("add", "CNAME", (), ("apps.partner.test",)),
)


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    zone = Zone()
    zone.add(SHOP, "A", "192.0.2.2")
    zone.add(SHOP, "A", "192.0.2.1")
    zone.add(f"other.{APEX}", "TXT", '"stays"')
    async with NameServer.serve(zone, key=UpdateKey.mint("customer")) as server:
        yield server


async def write(server: NameServer, *changes: Change, key: UpdateKey | None = None) -> None:
    assert server.key is not None
    key = key or server.key
    credentials = {"key_name": key.name, "key_secret": key.secret, "server": server.address}
    await DynamicUpdate(Resolver([], LOOPBACK), LOOPBACK).write(APEX, changes, credentials, None)


async def test_a_plan_is_taken_whole_and_can_be_taken_back(server: NameServer) -> None:
    before = sorted(server.zone.listed())
    await write(server, *MOVE)
    assert sorted(server.zone.listed()) == [
        (f"other.{APEX}", "TXT", '"stays"'),
        (SHOP, "CNAME", "apps.partner.test."),
    ]
    await write(server, *(replace(each, before=each.after, after=each.before) for each in MOVE))
    assert sorted(server.zone.listed()) == before


@pytest.mark.parametrize(
    "before", [("192.0.2.1",), ("192.0.2.1", "192.0.2.2", "192.0.2.3"), ()], ids=["fewer", "more", "none"]
)
async def test_a_zone_that_has_changed_takes_nothing(server: NameServer, before: tuple[str, ...]) -> None:
    there = sorted(server.zone.listed())
    with pytest.raises(WayFailed) as failed:
        await write(server, replace(MOVE[0], before=before), MOVE[1])
    assert failed.value.code == "zone_changed"
    assert sorted(server.zone.listed()) == there


@pytest.mark.parametrize("name", ["customer", "another"])
async def test_a_wrong_key_changes_nothing(server: NameServer, name: str) -> None:
    there = sorted(server.zone.listed())
    with pytest.raises(WayFailed) as failed:
        await write(server, *MOVE, key=UpdateKey.mint(name))
    assert failed.value.code == "wrong_token"
    assert sorted(server.zone.listed()) == there


@pytest.mark.parametrize(
    ("answer", "code", "fields"),
    [
        (dns.rcode.NOTAUTH, "wrong_token", ("key_name", "key_algorithm")),  # as knot 3.4 refuses an unknown key
        (dns.rcode.REFUSED, "not_allowed", ()),
        (dns.rcode.NOERROR, "provider_unreachable", ()),
        (None, "provider_unreachable", ()),
    ],
)
async def test_an_answer_without_a_signature_is_believed_where_it_refuses(
    answer: dns.rcode.Rcode | None, code: str, fields: tuple[str, ...]
) -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(2), "big")
        question = dns.message.from_wire(await reader.readexactly(size), keyring=False)
        if answer is not None:
            reply = dns.message.make_response(question)
            reply.set_rcode(answer)
            reply.tsig = None
            writer.write(reply.to_wire(prepend_length=True))
        writer.close()

    key = UpdateKey.mint("customer")
    async with await asyncio.start_server(respond, "127.0.0.1", 0) as here:
        address = f"127.0.0.1:{here.sockets[0].getsockname()[1]}"
        credentials = {"key_name": key.name, "key_secret": key.secret, "server": address}
        with pytest.raises(WayFailed) as failed:
            await DynamicUpdate(Resolver([], LOOPBACK), LOOPBACK).write(APEX, MOVE, credentials, None)
    assert (failed.value.code, failed.value.fields) == (code, fields)


async def test_an_answer_that_is_far_too_long_is_not_read() -> None:
    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        writer.write(b"\xff\xff" + bytes(65_535))
        writer.close()

    key = UpdateKey.mint("customer")
    update = new_update(APEX, read_key(key.name, key.secret))
    async with await asyncio.start_server(respond, "127.0.0.1", 0) as here:
        with pytest.raises(ServerSilent, match="65535 octets"):
            await send_update(update, HostPort(*here.sockets[0].getsockname()[:2]))
