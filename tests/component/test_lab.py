"""The lab behaves like the world it stands in for: checked with clients it did not write."""

from __future__ import annotations

import asyncio
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import dns.asyncquery
import dns.message
import dns.rcode
import orjson
import pytest
import pytest_asyncio

from bench.lab import Behaviour, Lab
from bench.lab.lab import POWERDNS_ZONE
from bench.lab.origin import pattern
from bench.lab.powerdns import find_powerdns


@pytest_asyncio.fixture
async def lab() -> AsyncIterator[Lab]:
    async with Lab.start() as running:
        yield running


async def ask(lab: Lab, name: str, kind: str, *, tcp: bool = False, timeout: float = 2) -> dns.message.Message:
    query = dns.message.make_query(name, kind)
    send = dns.asyncquery.tcp if tcp else dns.asyncquery.udp
    return await send(query, lab.dns.host, port=lab.dns.port, timeout=timeout)


def values(response: dns.message.Message) -> list[str]:
    return [item.to_text() for rrset in response.answer for item in rrset]


async def test_the_zone_is_changed_at_its_desk(lab: Lab) -> None:
    record = 'shop.customer.example TXT "one and one"'
    async with aiohttp.ClientSession(lab.desk.url) as session:
        async with session.put("/", data=record + "\n") as answer:
            assert (answer.status, await answer.text()) == (200, record + "\n")
        assert values(await ask(lab, "shop.customer.example", "TXT")) == ['"one and one"']
        async with session.delete("/", data=record) as answer:
            assert (answer.status, await answer.text()) == (200, "")
        assert values(await ask(lab, "shop.customer.example", "TXT")) == []
        for nonsense in ("", "shop TXT", "shop.customer.example A here", "a..b A 192.0.2.1", "shop NONE 1"):
            async with session.put("/", data=nonsense) as answer:
                assert answer.status == 400


@pytest.mark.parametrize("tcp", [False, True])
async def test_zone_follows_cnames_as_a_resolver_does(lab: Lab, tcp: bool) -> None:
    lab.zone.add("shop.customer.example", "CNAME", "apps.partner.example")
    lab.zone.add("apps.partner.example", "CNAME", "power.service.example")
    lab.zone.add("power.service.example", "A", "127.0.0.1")

    response = await ask(lab, "shop.customer.example", "A", tcp=tcp)

    assert values(response) == ["apps.partner.example.", "power.service.example.", "127.0.0.1"]
    assert response.rcode() == dns.rcode.NOERROR


@pytest.mark.skipif(find_powerdns() is None, reason="without Debian's pdns-server")
async def test_questions_about_a_delegated_zone_are_its_own_servers_to_answer() -> None:
    async with Lab.start(has_powerdns=True) as lab:
        assert lab.powerdns is not None
        lab.zone.add("apps.partner.example", "A", "127.0.0.1")
        assert values(await ask(lab, f"shop.{POWERDNS_ZONE}", "A")) == ["192.0.2.1"]
        missing = await ask(lab, f"other.{POWERDNS_ZONE}", "A")
        assert (missing.rcode(), values(missing)) == (dns.rcode.NXDOMAIN, [])
        await lab.powerdns.replace(POWERDNS_ZONE, f"shop.{POWERDNS_ZONE}", "A")
        await lab.powerdns.replace(POWERDNS_ZONE, f"shop.{POWERDNS_ZONE}", "CNAME", "apps.partner.example.")
        for tcp in (False, True):
            followed = await ask(lab, f"shop.{POWERDNS_ZONE}", "A", tcp=tcp)
            assert values(followed) == ["apps.partner.example.", "127.0.0.1"]
            assert followed.rcode() == dns.rcode.NOERROR


async def test_wildcard_covers_missing_names_only(lab: Lab) -> None:
    lab.zone.add("*.customer.example", "CNAME", "apps.partner.example")
    lab.zone.add("real.customer.example", "A", "192.0.2.1")
    lab.zone.add("deep.below.customer.example", "A", "192.0.2.2")

    assert values(await ask(lab, "any.customer.example", "CNAME")) == ["apps.partner.example."]
    assert values(await ask(lab, "real.customer.example", "CNAME")) == []
    assert values(await ask(lab, "below.customer.example", "CNAME")) == []  # exists, because of the name below it
    assert (await ask(lab, "other.below.customer.example", "A")).rcode() == dns.rcode.NXDOMAIN


async def test_a_record_added_after_nxdomain_is_seen_at_once(lab: Lab) -> None:
    assert (await ask(lab, "new.example", "TXT")).rcode() == dns.rcode.NXDOMAIN
    lab.zone.add("new.example", "TXT", '"here"')
    assert values(await ask(lab, "new.example", "TXT")) == ['"here"']
    lab.zone.remove("new.example", "TXT", '"here"')
    assert (await ask(lab, "new.example", "TXT")).rcode() == dns.rcode.NXDOMAIN
    assert [question.type for question in lab.zone.questions] == ["TXT", "TXT", "TXT"]


async def test_names_misbehave_as_told_and_mend(lab: Lab) -> None:
    lab.zone.add("shop.example", "A", "192.0.2.1")
    lab.zone.misbehave("shop.example", Behaviour.SERVFAIL)
    assert (await ask(lab, "shop.example", "A")).rcode() == dns.rcode.SERVFAIL
    lab.zone.misbehave("shop.example", Behaviour.TIMEOUT)
    with pytest.raises(dns.exception.Timeout):
        await ask(lab, "shop.example", "A", timeout=0.2)
    lab.zone.misbehave("shop.example", None)
    assert values(await ask(lab, "SHOP.example.", "A")) == ["192.0.2.1"]


async def test_a_cname_loop_is_servfail(lab: Lab) -> None:
    lab.zone.add("a.example", "CNAME", "b.example")
    lab.zone.add("b.example", "CNAME", "a.example")
    assert (await ask(lab, "a.example", "A")).rcode() == dns.rcode.SERVFAIL


async def test_long_answers_are_truncated_over_udp_and_whole_over_tcp(lab: Lab) -> None:
    for number in range(40):
        lab.zone.add("long.example", "TXT", f'"{number:03}{"x" * 60}"')
    query = dns.message.make_query("long.example", "TXT")
    response, used_tcp = await dns.asyncquery.udp_with_fallback(query, lab.dns.host, port=lab.dns.port, timeout=2)
    assert used_tcp
    assert len(values(response)) == 40


async def test_nonsense_is_ignored_and_the_server_lives(lab: Lab) -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        asyncio.DatagramProtocol, remote_addr=(lab.dns.host, lab.dns.port)
    )
    transport.sendto(b"\x00nonsense")
    transport.close()
    lab.zone.add("shop.example", "A", "192.0.2.1")
    assert values(await ask(lab, "shop.example", "A")) == ["192.0.2.1"]


def test_a_record_that_is_none_is_refused() -> None:
    from bench.lab.zone import Zone

    with pytest.raises(ValueError, match="not a A record"):
        Zone().add("shop.example", "A", "nowhere")


async def test_page_shows_host_headers_and_base_path_escaped(lab: Lab) -> None:
    headers = {"x-service-forwarded-host": "shop.customer.example", "User-Agent": "<script>"}
    async with aiohttp.ClientSession() as client, client.get(f"{lab.origin.url}/a", headers=headers) as answer:
        page = await answer.text()
    assert answer.status == 200
    assert "<h1>shop.customer.example</h1>" in page
    assert "Version A" in page
    assert "<code>/a</code>" in page
    assert "<script>" not in page


async def test_versions_differ_and_static_lives_at_the_root(lab: Lab) -> None:
    async with aiohttp.ClientSession(lab.origin.url) as client:
        pages = {base: await (await client.get(f"{base}/")).text() for base in ("", "/a", "/b")}
        assert len(set(pages.values())) == 3
        assert (await client.get("/static/mark.svg")).status == 200
        assert (await client.get("/a/static/mark.svg")).status == 404


async def test_echo_tells_the_request_as_it_came(lab: Lab) -> None:
    body = os.urandom(200_000)
    async with aiohttp.ClientSession() as client:
        url = f"{lab.origin.url}/b/echo?x=1&x=2"
        async with client.put(url, data=body, headers={"X-Twice": "once"}) as answer:
            seen = await answer.json()
    assert (seen["method"], seen["path"], seen["query"]) == ("PUT", "/b/echo", "x=1&x=2")
    assert ["X-Twice", "once"] in seen["headers"]
    assert seen["body"] == {"bytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}


@pytest.mark.parametrize("size", [0, 1, 1024, 200_003])
async def test_bytes_are_exactly_as_many_as_asked(lab: Lab, size: int) -> None:
    async with aiohttp.ClientSession() as client, client.get(f"{lab.origin.url}/bytes/{size}") as answer:
        assert answer.content_length == size
        assert await answer.read() == pattern(size)


async def test_websocket_says_everything_back(lab: Lab) -> None:
    async with aiohttp.ClientSession() as client, client.ws_connect(f"{lab.origin.url}/a/socket") as socket:
        await socket.send_str("hello")
        assert await socket.receive_str() == "hello"
        await socket.send_bytes(b"\x00\x01")
        assert await socket.receive_bytes() == b"\x00\x01"


async def test_sink_remembers_deliveries_and_answers_as_told(lab: Lab) -> None:
    lab.sink.answer_with(503, {"Retry-After": "7"})
    async with aiohttp.ClientSession(lab.sink.url) as client:
        answer = await client.post("/hooks", json={"type": "domain.power"}, headers={"Webhook-Id": "1"})
        assert (answer.status, answer.headers["Retry-After"]) == (503, "7")
        (delivery,) = await lab.sink.wait_for(1)
        assert delivery.json() == {"type": "domain.power"}
        assert delivery.headers["webhook-id"] == "1"
        listed = await (await client.get("/")).json()
        assert [item["path"] for item in listed] == ["/hooks"]
        await client.delete("/")
        assert await (await client.get("/")).json() == []


def test_as_a_process_it_prints_its_addresses_and_stops_on_sigterm(tmp_path: Path) -> None:
    argv = [sys.executable, "-m", "bench.lab", "--record", "shop.example A 192.0.2.1"]
    root = str(Path(__file__).parents[2])
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=tmp_path, env=os.environ | {"PYTHONPATH": root})
    with process:
        try:
            assert process.stdout is not None
            addresses = orjson.loads(process.stdout.readline())
            assert set(addresses) == {"origin", "dns", "zone", "sink", "partner", "key", "provider", "powerdns", "rdap"}
            host, port = addresses["dns"].rsplit(":", 1)
            query = dns.message.make_query("shop.example", "A")
            assert values(dns.query.udp(query, host, port=int(port), timeout=2)) == ["192.0.2.1"]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
