"""``python -m bench.page_load``: how long a browser waits for a page of 60 assets behind a link of 50 ms round trip.

Headless Chromium loads the page until `load`, with an empty cache and a new connection each time: from nginx over
HTTP/2, from the edge over HTTP/2, and from the edge over HTTP/1.1. The link delays what both sides send by 25 ms each,
a new connection's first octets by another round trip, as TCP's handshake does; it loses nothing, and has no limit of
bandwidth (`bench.lab.slow_link`: netem is not in every kernel). Prints the median of each, and the goals: the edge
takes no more than 5 % longer than nginx, and half as long as over HTTP/1.1. Needs Debian's `chromium-headless-shell`
and `nginx-light`. The table is also written as JSON (``page_load.json`` in ``bench/output``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

from aiohttp import web
from playwright.async_api import Browser, async_playwright

from bench import output
from bench.lab.serving import serving
from bench.lab.slow_link import slow_link
from bench.peers import HOST, Peer, Sites, missing
from bench.peers.certificates import write_certificates
from bench.peers.frontage_edge import Frontage
from bench.peers.nginx_proxy import Nginx
from common.errors import OperatorError

ASSETS: Final = 60
ONE_WAY_SECONDS: Final = 0.025
_SIZES: Final = [2_000 + 1_733 * (number % 23) for number in range(ASSETS)]  # up to 40 KB, 1.2 MB in all
_PAGE: Final = "<!doctype html><title>Sixty</title>" + "".join(
    f'<img alt="" width="16" height="16" src="/asset-{number}.svg">' for number in range(ASSETS)
)
_SVG: Final = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><!--{}--></svg>'
_LOAD: Final = "performance.getEntriesByType('navigation')[0].loadEventStart"
_PROTOCOLS: Final = "[...new Set(performance.getEntriesByType('resource').map(entry => entry.nextHopProtocol))].join()"


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.page_load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--loads", type=int, default=15, help="of each, in turn (15)")
    arguments = parser.parse_args()
    if shutil.which("chromium-headless-shell") is None or missing(Nginx.needs):
        sys.exit("bench.page_load: on Debian, as root, `apt-get install chromium-headless-shell nginx-light`")
    try:
        found = asyncio.run(measure(arguments.loads))
    except OperatorError as error:
        sys.exit(f"bench.page_load: {error}")
    nginx, ours, old = found.values()
    for name, milliseconds in found.items():
        print(f"{name:24} {milliseconds:7,.0f} ms")
    print(f"beside nginx {ours / nginx:.3f} (goal 1.05), beside HTTP/1.1 {ours / old:.3f} (goal 0.5)")
    print(f"written to {output.write('page_load', {'milliseconds_until_load': found})}")


async def measure(loads: int) -> dict[str, float]:
    """Return the median of so many loads, in milliseconds: of nginx, of the edge, and of it over HTTP/1.1.

    Raises: `OperatorError` where the browser speaks another protocol.
    """
    async with contextlib.AsyncExitStack() as stack:
        certificates = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="frontage-page-")))
        write_certificates(certificates, (HOST,))
        origin = await stack.enter_async_context(serving(_application(), "127.0.0.1", 0))
        sites = Sites({HOST: int(origin.rpartition(":")[2])}, certificates)
        links = [await stack.enter_async_context(_behind_link(peer, sites)) for peer in (Nginx(), Frontage())]
        browsers = {
            "nginx, HTTP/2": (await stack.enter_async_context(_browser()), links[0], "h2"),
            "Frontage, HTTP/2": (await stack.enter_async_context(_browser()), links[1], "h2"),
            "Frontage, HTTP/1.1": (
                await stack.enter_async_context(_browser("--disable-http2")),
                links[1],
                "http/1.1",
            ),
        }
        found: dict[str, list[float]] = {name: [] for name in browsers}
        for number in range(loads + 1):
            for name, (browser, port, protocol) in browsers.items():
                milliseconds = await _load(browser, port, protocol)
                if number:  # the first warms both sides up
                    found[name].append(milliseconds)
    return {name: statistics.median(each) for name, each in found.items()}


def _application() -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        number = request.match_info.get("number")
        if number is None:
            return web.Response(text=_PAGE, content_type="text/html")
        return web.Response(text=_SVG.format("x" * _SIZES[int(number)]), content_type="image/svg+xml")

    app = web.Application()
    app.router.add_get("/", answer)
    app.router.add_get("/asset-{number:[0-9]+}.svg", answer)
    return app


@contextlib.asynccontextmanager
async def _behind_link(peer: Peer, sites: Sites) -> AsyncIterator[int]:
    """Yield the port of a slow link to the peer's TLS port."""
    async with (
        peer.serve(sites) as running,
        slow_link(running.https_port, ONE_WAY_SECONDS, connecting_seconds=2 * ONE_WAY_SECONDS) as port,
    ):
        yield port


@contextlib.asynccontextmanager
async def _browser(*more: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage", f"--host-resolver-rules=MAP {HOST} 127.0.0.1", *more]
        path = shutil.which("chromium-headless-shell")
        browser = await playwright.chromium.launch(executable_path=path, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


async def _load(browser: Browser, port: int, protocol: str) -> float:
    """Return the milliseconds until `load` of one visit. Raises: `OperatorError`."""
    context = await browser.new_context(ignore_https_errors=True)  # with connections and a cache of its own
    try:
        page = await context.new_page()
        await page.goto(f"https://{HOST}:{port}/", wait_until="load")
        spoken = await page.evaluate(_PROTOCOLS)
        if spoken != protocol:
            raise OperatorError(f"the browser spoke {spoken!r}, not {protocol!r}")
        milliseconds: float = await page.evaluate(_LOAD)
        return milliseconds
    finally:
        await context.close()


if __name__ == "__main__":
    main()
