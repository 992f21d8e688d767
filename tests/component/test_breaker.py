"""Origins that cannot be reached, over real sockets, on both loops."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.lab.ports import free_ports
from tests.component.peers import Wire, answer_each, edge, origin
from tests.component.test_origin_tls import server_context
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


async def test_an_unreachable_origin_is_left_alone_and_found_again(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path, FRONTAGE_EDGE_BREAKER_FAILURES="3") as proxy:
        proxy.replica.enrol("shop.example.com", f"http://127.0.0.1:{free_ports(1)[0]}")
        proxy.replica.enrol("other.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        answers = []
        for _ in range(5):
            await client.send(GET)
            answers.append(await client.response())
        assert [head.split()[1] for head, _ in answers] == [b"502"] * 3 + [b"503"] * 2
        assert b"\r\nRetry-After: 5\r\n" in answers[3][0]
        assert b'"code":"origin_unreachable"' in answers[3][1]
        assert proxy.worker._dispatcher.open_breakers == 1
        await client.send(GET.replace(b"shop", b"other"))
        assert (await client.response())[1] == b"ok"


async def refuse_in_the_clear(wire: Wire) -> None:
    """As servers answer TLS on a port for plain HTTP."""
    await wire.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


async def test_an_unreached_origin_is_reported_with_its_fault(tmp_path: Path) -> None:
    plain, unproven = free_ports(1)[0], tmp_path / "origin"
    unproven.mkdir()
    async with (
        origin(answer_each, server_context(unproven, "localhost")) as untrusted,
        origin(refuse_in_the_clear) as not_tls,
        origin(answer_each) as there,
        edge(tmp_path) as proxy,
    ):
        urls = [
            f"http://127.0.0.1:{plain}",
            f"https://localhost:{untrusted.port}",
            f"https://localhost:{not_tls.port}",
            "http://10.0.0.1",
            there.url,
        ]
        client = await proxy.connect()
        for url in urls:
            proxy.replica.enrol("shop.example.com", url)
            proxy.change()
            await client.send(GET)
            await client.response()
        found = {(each.origin.scheme, each.origin.port): each.fault for each in proxy.worker.failing_origins()}
        assert found == {
            ("http", plain): "refused",
            ("https", untrusted.port): "certificate",
            ("https", not_tls.port): "tls",
            ("http", 80): "forbidden",
        }


async def test_a_probe_finds_an_origin_that_came_back(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    async with edge(tmp_path, FRONTAGE_EDGE_BREAKER_FAILURES="1") as proxy:
        proxy.replica.enrol("shop.example.com", f"http://127.0.0.1:{port}")
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        assert b" 502 " in (await client.response())[0]

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
            writer.close()
            await writer.wait_closed()

        server = await asyncio.start_server(serve, "127.0.0.1", port)
        statuses = set()

        async def has_recovered() -> bool:
            await client.send(GET)
            statuses.add((await client.response())[0].split()[1])
            return b"200" in statuses

        await until(has_recovered)
        assert statuses == {b"503", b"200"}
        assert proxy.worker._dispatcher.open_breakers == 0
        server.close()


async def test_all_who_wait_for_a_place_hear_of_it(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_BREAKER_FAILURES="1", FRONTAGE_EDGE_ORIGIN_CONNECTIONS="1") as proxy:
        proxy.replica.enrol("shop.example.com", f"http://127.0.0.1:{free_ports(1)[0]}")
        proxy.change()
        clients = [await proxy.connect() for _ in range(20)]
        for client in clients:
            await client.send(GET)
        statuses = [(await client.response())[0].split()[1] for client in clients]
        assert statuses.count(b"502") == 1
        assert statuses.count(b"503") == 19
        await until(lambda: proxy.worker.upstream_count == 0)
