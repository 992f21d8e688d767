"""The requests a benchmark sends, as bytes: one block for all, every block different, or a browser's page load.

Who sends them (wrk, our own client) only goes round the list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

RECORDED_PAGE = Path(__file__).with_name("recorded_page.json")
VARIANTS = 4096

_BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language": "en-US,en;q=0.5",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Referer": "https://shop.customer.localhost/products?page=2",
    "Cookie": "session=6f1d0e7a9b3c4d5e8f70112233445566; theme=light",
}


@dataclass(frozen=True, slots=True)
class PageLoad:
    """The requests of a browser for one page; `files` are the sizes of the answers, by path."""

    recorded_with: str
    requests: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    files: Mapping[str, int]


def browser_fields() -> list[tuple[str, str]]:
    """Return the fields of a browser, but for Host."""
    return list(_BROWSER.items())


def same(host: str, path: str) -> list[bytes]:
    """Return one request of a browser."""
    return [_head(host, path, _BROWSER.items())]


def closing(host: str, path: str) -> list[bytes]:
    """Return one request that is the last of its connection."""
    return [_head(host, path, [*_BROWSER.items(), ("Connection", "close")])]


def varied(host: str, path: str) -> list[bytes]:
    """Return `VARIANTS` requests, no two blocks alike."""
    return [_variant(number, host, path) for number in range(VARIANTS)]


def other_path(path: str, number: int) -> str:
    """Return the path with a query that differs from number to number."""
    return f"{path}?n={number}&v={number * 7919}"


def other_paths(host: str, path: str) -> list[bytes]:
    """Return `VARIANTS` requests of a browser that differ in their paths alone."""
    return [_head(host, other_path(path, number), _BROWSER.items()) for number in range(VARIANTS)]


def other_cookies(host: str, path: str, numbers: Iterable[int] = range(VARIANTS)) -> list[bytes]:
    """Return a request of a browser for each number, which differs in its path and its session cookie alone."""
    return [
        _head(
            host,
            other_path(path, number),
            (_BROWSER | {"Cookie": _own_fields(number, host)["Cookie"]}).items(),
        )
        for number in numbers
    ]


def other_kinds(host: str, path: str, numbers: Iterable[int] = range(VARIANTS)) -> list[bytes]:
    """Return a request for each number with the fields of one of the recorded page's, in turn, and another path.

    A page, a script, an image and so on differ in what they accept, and in some other fields.
    """
    recorded = [[(name, value) for name, value in fields if name != "Connection"] for _, fields in read_page().requests]
    return [_head(host, other_path(path, number), recorded[number % len(recorded)]) for number in numbers]


def posts(host: str, path: str) -> list[bytes]:
    """Return `VARIANTS` requests with a body of 200 bytes of JSON each, no two alike."""
    return [_post(number, host, path) for number in range(VARIANTS)]


def asking_heads(host: str, path: str) -> list[bytes]:
    """Return requests as `varied` does, with the method HEAD."""
    return [request.replace(b"GET", b"HEAD", 1) for request in varied(host, path)]


def long_cookies(host: str, path: str) -> list[bytes]:
    """Return requests as `varied` does, with 2 KB of cookies each."""
    return [
        request.replace(b"theme=light", b"theme=light; consent=%01900x" % number)
        for number, request in enumerate(varied(host, path))
    ]


def of_paths(host: str, paths: Sequence[str]) -> list[bytes]:
    """Return requests as `varied` does, for one of the paths after another."""
    return [_variant(number, host, paths[number % len(paths)]) for number in range(VARIANTS)]


def ending(requests: Iterable[bytes]) -> list[bytes]:
    """Return the same requests, of which some end their connection: the first to the tenth behind the last, in turn."""
    found: list[bytes] = []
    lengths = cycle(range(1, 11))
    left = next(lengths)
    for request in requests:
        left -= 1
        found.append(request if left else request[:-2] + b"Connection: close\r\n\r\n")
        left = left or next(lengths)
    return found


def host_last(requests: Iterable[bytes]) -> list[bytes]:
    """Return the same requests with Host as the last field, as axios, wrk and several load balancers send it."""
    return [_with_host_last(request) for request in requests]


def round_robin(hosts: Sequence[str], path: str) -> list[bytes]:
    """Return one request to each host, no two blocks alike."""
    return [_variant(number, host, path) for number, host in enumerate(hosts)]


def page(host: str, recorded: PageLoad) -> list[bytes]:
    """Return the requests of the recorded page load."""
    return [_head(host, target, fields) for target, fields in recorded.requests]


def read_page(path: Path = RECORDED_PAGE) -> PageLoad:
    """Read the recorded page load."""
    recorded = json.loads(path.read_text("utf-8"))
    blocks = [tuple((name, value) for name, value in block) for block in recorded["blocks"]]
    return PageLoad(
        recorded_with=recorded["recorded_with"],
        requests=tuple((target, blocks[block]) for target, block, _ in recorded["requests"]),
        files={target.partition("?")[0]: size for target, _, size in recorded["requests"]},
    )


def _variant(number: int, host: str, path: str) -> bytes:
    return _head(host, f"{path}?n={number}", (_BROWSER | _own_fields(number, host)).items())


def _own_fields(number: int, host: str) -> dict[str, str]:
    return {
        "Accept-Language": f"en-US,en;q=0.{number % 9 + 1}",
        "Referer": f"https://{host}/products?page={number}",
        "Cookie": f"session={number * 2654435761:032x}; theme=light",
    }


def _post(number: int, host: str, path: str) -> bytes:
    body = f'{{"number": {number}, "note": "'.encode().ljust(198, b"x") + b'"}'
    fields = (
        _BROWSER | _own_fields(number, host) | {"Content-Type": "application/json", "Content-Length": str(len(body))}
    )
    return _head(host, f"{path}?n={number}", fields.items(), "POST") + body


def _with_host_last(request: bytes) -> bytes:
    line, host, *others, end, _ = request.split(b"\r\n")
    return b"\r\n".join((line, *others, host, end, b""))


def _head(host: str, target: str, fields: Iterable[tuple[str, str]], method: str = "GET") -> bytes:
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}"]
    lines += [f"{name}: {value}" for name, value in fields]
    return "\r\n".join((*lines, "", "")).encode("latin-1")
