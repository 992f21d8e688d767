"""``python -m bench.record_page``: records what a real browser sends to load one page, for `bench.compare` to replay.

A shop's front page of the usual make (styles, scripts, fonts, pictures, API calls, a cookie set on the way) is
served on loopback, and headless Chromium is sent there. What it asked for, in the order it came, is written to
``recorded_page.json``: distinct blocks of header fields once, and of each request its target, its block and how many
bytes were answered. `Host` is left out: the program that replays it sets it.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import tempfile

from aiohttp import web

from bench.heads import RECORDED_PAGE
from bench.lab.serving import serving

_HOST = "shop.customer.localhost"
_LOAD_SECONDS = 60
_QUIET_SECONDS = 1.5
_COOKIE = "session=6f1d0e7a9b3c4d5e8f70112233445566; Path=/; HttpOnly; SameSite=Lax"
_STYLES = {"/assets/base.5f2c1a.css": 18_400, "/assets/shop.91d04e.css": 46_200}
_SCRIPTS = {
    "/assets/vendor.c01f77.js": 141_000,
    "/assets/shop.44b9ae.js": 63_500,
    "/assets/cart.7e20d3.js": 12_300,
    "/assets/search.1be85c.js": 21_900,
    "/assets/analytics.b3390f.js": 28_800,
}
_FONTS = {"/assets/inter-regular.9a1e.woff2": 24_300, "/assets/inter-semibold.4c77.woff2": 25_100}
_PICTURES = {
    f"/media/products/{1000 + 37 * n}/front-640.jpg?v={n % 5}": 9_000 + 2_713 * (n % 11) for n in range(20)
} | {
    "/media/hero/autumn-1600.jpg": 148_000,
    "/assets/logo.svg": 3_100,
    "/assets/sprite.svg?v=12": 7_400,
}
_CALLS = {
    "/api/session": 310,
    "/api/cart?currency=EUR": 870,
    "/api/products?collection=autumn&page=1&per_page=24&sort=popular": 18_200,
    "/api/recommendations?for=home&limit=8": 5_600,
    "/api/banners": 420,
}
_OTHERS = {"/favicon.ico": 4_200, "/site.webmanifest": 640}
_PAGE = "/collections/autumn?utm_source=newsletter"
_TYPES = {
    "css": "text/css",
    "js": "text/javascript",
    "woff2": "font/woff2",
    "jpg": "image/jpeg",
    "svg": "image/svg+xml",
    "ico": "image/x-icon",
    "webmanifest": "application/manifest+json",
}


class _Recorder:
    """Serves the page and notes every request for it; created by `_record`."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, list[tuple[str, str]], int]] = []
        self._sizes = _STYLES | _SCRIPTS | _FONTS | _PICTURES | _CALLS | _OTHERS

    async def answer(self, request: web.Request) -> web.Response:
        """Note a request and answer it."""
        target = request.raw_path
        page = _html().encode()
        size = len(page) if target == _PAGE else self._sizes.get(target)
        if size is None:
            raise web.HTTPNotFound
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.raw_headers]
        self.requests.append((target, [field for field in fields if field[0].lower() != "host"], size))
        if target == _PAGE:
            return web.Response(body=page, content_type="text/html", headers={"Set-Cookie": _COOKIE})
        kind = target.partition("?")[0].rpartition(".")[2]
        body = b"{}".ljust(size) if target in _CALLS else b" " * size
        return web.Response(body=body, content_type=_TYPES.get(kind, "application/json"))


def main() -> None:
    """Record the page load and write it."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("bench.record_page: chromium not found: on Debian, `apt-get install chromium`")
    recorder, version = asyncio.run(_record(browser))
    RECORDED_PAGE.write_text(_as_json(recorder, version))
    print(f"{len(recorder.requests)} requests of {version} written to {RECORDED_PAGE}")


async def _record(browser: str) -> tuple[_Recorder, str]:
    recorder = _Recorder()
    app = web.Application()
    app.router.add_get("/{anything:.*}", recorder.answer)
    version = (await _output(browser, "--version")).strip()
    async with serving(app, "127.0.0.1", 0) as address:
        port = address.rpartition(":")[2]
        with tempfile.TemporaryDirectory(prefix="frontage-bench-", ignore_cleanup_errors=True) as profile:
            await _output(
                browser,
                *("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"),
                *(f"--timeout={int(_QUIET_SECONDS * 1000)}", "--virtual-time-budget=5000", "--dump-dom"),
                f"http://{_HOST}:{port}{_PAGE}",
            )
    for index, (target, fields, size) in enumerate(recorder.requests):
        own = [(name, value.replace(f"http://{_HOST}:{port}", f"https://{_HOST}")) for name, value in fields]
        recorder.requests[index] = (target, own, size)
    return recorder, version


async def _output(*argv: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *argv, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    async with asyncio.timeout(_LOAD_SECONDS):
        text, _ = await process.communicate()
    return text.decode("utf-8", "replace")


def _html() -> str:
    styles = "".join(f'<link rel="stylesheet" href="{path}">' for path in _STYLES)
    scripts = "".join(f'<script type="module" src="{path}"></script>' for path in _SCRIPTS)
    faces = "".join(
        f"@font-face{{font-family:F{number};src:url({path})}} .f{number}{{font-family:F{number}}}"
        for number, path in enumerate(_FONTS)
    )
    text = "".join(f'<p class="f{number}">Autumn, page {number}</p>' for number in range(len(_FONTS)))
    pictures = "".join(f'<img alt="" width="64" height="64" src="{path}">' for path in _PICTURES)
    calls = "".join(
        f'fetch("{path}",{{headers:{{"Accept":"application/json","X-Requested-With":"fetch"}}}});' for path in _CALLS
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Autumn</title>'
        '<link rel="icon" href="/favicon.ico"><link rel="manifest" href="/site.webmanifest">'
        f"{styles}<style>{faces}</style>{scripts}</head><body>{text}{pictures}"
        f"<script>{calls}</script>{'<!-- product -->' * 1200}</body></html>"
    )


def _as_json(recorder: _Recorder, version: str) -> str:
    """Render the recording, one request a line, to be read in a diff."""
    blocks: list[list[tuple[str, str]]] = []
    requests = []
    for target, fields, size in recorder.requests:
        if fields not in blocks:
            blocks.append(fields)
        requests.append([target, blocks.index(fields), size])
    lines = [
        "{",
        f' "recorded_with": {json.dumps(version)},',
        ' "blocks": [',
        ",\n".join("  [\n" + ",\n".join(f"   {json.dumps(field)}" for field in fields) + "\n  ]" for fields in blocks),
        " ],",
        ' "requests": [',
        ",\n".join(f"  {json.dumps(request)}" for request in requests),
        " ]",
        "}",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
