"""What a worker counts for each domain, over real sockets."""

from __future__ import annotations

from pathlib import Path

from bench.lab.ports import free_ports
from common.traffic import BUCKETS, BYTES_DOWN, CLIENT_ERRORS, ORIGIN_ERRORS, SERVER_ERRORS
from tests.component.peers import Wire, edge, origin

GET = b"GET /%b HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


async def script(wire: Wire) -> None:
    for status in (b"200 OK", b"404 Not Found", b"500 Internal Server Error"):
        await wire.head()
        await wire.send(b"HTTP/1.1 %b\r\nContent-Length: 2\r\n\r\nok" % status)


async def test_requests_bytes_and_errors_are_counted_by_domain_and_application(tmp_path: Path) -> None:
    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.replica.enrol("down.example.com", f"http://127.0.0.1:{free_ports(1)[0]}")
        proxy.change()
        client, sent = await proxy.connect(), 0
        for path in (b"a", b"b", b"c"):
            await client.send(GET % path)
            head, body = await client.response()
            sent += len(head) + len(body)
        await client.send((GET % b"d").replace(b"shop", b"down"))
        await client.response()
        traffic = proxy.worker.counters.domains
        traffic.settle(1.0, lambda _: "app")
        counts = {domain: figures for _, domain, figures in traffic.take_report().to_plain()}
        assert sum(counts["shop.example.com"][:BUCKETS]) == 3
        assert counts["shop.example.com"][BYTES_DOWN:] == [sent, 1, 1, 0, 0]
        assert sum(counts["down.example.com"][:BUCKETS]) == 1
        down = counts["down.example.com"]
        assert (down[CLIENT_ERRORS], down[SERVER_ERRORS], down[ORIGIN_ERRORS]) == (0, 1, 1)
        assert sum(counts[""][:BUCKETS]) == 4
        families = {family.name: family for family in proxy.worker.measurements()}
        (seconds,) = families["frontage_edge_exchange_seconds"].samples.values()
        assert sum(seconds[:BUCKETS]) == 4
        (until_head,) = families["frontage_edge_origin_seconds"].samples.values()
        assert sum(until_head[:BUCKETS]) == 3
