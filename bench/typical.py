"""A seeded mix of what visitors of real applications send and get: pages, JSON, posts, forms, 304s and redirects.

Requests are modelled on what Firefox sends (`bench/recorded_page.json`), responses on what applications in Rails and
Express answer. No two requests are alike, and no two responses: targets, cookies, referrers, tokens, entity tags, ids
and lengths differ. What does not vary: the browser (its User-Agent and the fields that it sends in every request), the
names and order of fields of each kind, and the fields of security policies.

`requests` are what clients send, `answers` what `bench.instructions`' origin answers to them, and `nginx_locations` the
same for an origin that is nginx: a mark of its own, `$request_id`, in each response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Final

VARIANTS: Final = 4096
_SEED: Final = 29
_PIECE: Final = "<p>A line of the page, as many of them as it takes.</p>\n" * 18  # 1 KB
_AGENT: Final = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
_DATE: Final = "Sun, 06 Nov 1994 08:49:37 GMT"

Fields = tuple[tuple[str, str], ...]

_POLICIES: Final[Fields] = (
    ("X-Frame-Options", "SAMEORIGIN"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "strict-origin-when-cross-origin"),
)
_SESSION: Final[Fields] = (
    ("ETag", 'W/"{mark}"'),
    ("Cache-Control", "max-age=0, private, must-revalidate"),
    ("Set-Cookie", "_shop_session={mark}{mark}%3D%3D--{mark}; path=/; HttpOnly; SameSite=Lax"),
    ("X-Request-Id", "{mark}"),
    ("X-Runtime", "0.0{mark}"),
)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request: how often of a hundred, and how it is answered.

    In the values of `answer_fields` and in `body`, `{mark}` is the response's own mark, `{target}` what was asked for,
    and `{kb}` a kilobyte of text.
    """

    share: int
    path: str
    method: str
    status: int
    content_type: str
    answer_fields: Fields
    body: str = ""


KINDS: Final = (
    Kind(
        15,
        "/products/",
        "GET",
        200,
        "text/html; charset=utf-8",
        (*_POLICIES, *_SESSION, ("Set-Cookie", "seen={mark}; path=/; max-age=86400"), ("Vary", "Accept-Encoding")),
        "<!doctype html><title>{target}</title>" + "{kb}" * 8,
    ),
    Kind(
        10,
        "/categories/",
        "GET",
        200,
        "text/html; charset=utf-8",
        (*_POLICIES, *_SESSION, ("Vary", "Accept-Encoding")),
        "<!doctype html><title>{target}</title>" + "{kb}" * 2,
    ),
    Kind(
        25,
        "/api/items/",
        "GET",
        200,
        "application/json; charset=utf-8",
        (("Vary", "Origin"), ("ETag", 'W/"1f4-{mark}"'), ("X-Request-Id", "{mark}")),
        '[{{"id":"{mark}","of":"{target}","name":"A thing that is sold","price":1990}}]',
    ),
    Kind(
        15,
        "/api/carts/",
        "POST",
        201,
        "application/json; charset=utf-8",
        (("Vary", "Origin"), ("ETag", 'W/"40-{mark}"'), ("X-Request-Id", "{mark}")),
        '{{"id":"{mark}","href":"{target}"}}',
    ),
    Kind(5, "/sign-in/", "POST", 302, "text/html; charset=utf-8", (*_SESSION, ("Location", "/account?from={mark}"))),
    Kind(
        25,
        "/assets/",
        "GET",
        304,
        "",
        (("ETag", '"{mark}"'), ("Cache-Control", "public, max-age=3600"), ("Last-Modified", _DATE)),
    ),
    Kind(
        5,
        "/go/",
        "GET",
        302,
        "text/html; charset=utf-8",
        (("Location", "/products/{mark}"), ("X-Request-Id", "{mark}")),
    ),
)


def requests(host: str) -> list[bytes]:
    """Return `VARIANTS` requests, no two alike, in an order that the seed decides."""
    rng = Random(_SEED)
    return [_request(rng, host, kind, number) for number, kind in enumerate(_kinds(rng))]


def answers() -> list[bytes]:
    """Return the answer to each of the `requests`, in their order."""
    rng = Random(_SEED)
    kinds = list(_kinds(rng))
    return [_answer(kind, f"{rng.getrandbits(128):032x}", "/" * (number % 40 + 1)) for number, kind in enumerate(kinds)]


def nginx_locations() -> str:
    """Return the locations of an nginx that answers the requests."""
    return f'set $kb "{_escaped(_PIECE)}";\n' + "".join(map(_location, KINDS))


def _kinds(rng: Random) -> Iterator[Kind]:
    weights = [kind.share for kind in KINDS]
    yield from rng.choices(KINDS, weights, k=VARIANTS)


# What clients send ------------------------------------------------------------------------------------------


def _request(rng: Random, host: str, kind: Kind, number: int) -> bytes:
    target = f"{kind.path}{_word(rng)}-{number}"
    if kind.status == 200 and rng.random() < 0.5:
        target += f"?page={rng.randrange(1, 500)}&sort={_word(rng)}"
    body = _BODIES[kind.path](rng, number) if kind.method == "POST" else ""
    fields = [("Host", host), ("User-Agent", _AGENT), *_FIELDS[kind.path](rng, host, body)]
    lines = [f"{kind.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields), "", body]
    return "\r\n".join(lines).encode("ascii")


def _page_fields(rng: Random, host: str, _: str) -> Fields:
    return (
        ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
        *_usual(),
        ("Referer", f"https://{host}/categories/{_word(rng)}?page={rng.randrange(500)}"),
        ("Connection", "keep-alive"),
        ("Cookie", _cookies(rng)),
        ("Upgrade-Insecure-Requests", "1"),
        *_fetch("document", "navigate"),
    )


def _api_fields(rng: Random, host: str, _: str) -> Fields:
    return (
        ("Accept", "application/json"),
        *_usual(),
        ("Referer", f"https://{host}/products/{_word(rng)}-{rng.randrange(5000)}"),
        ("Authorization", f"Bearer {rng.getrandbits(1200):0300x}"),
        ("Connection", "keep-alive"),
        ("Cookie", _cookies(rng)),
        *_fetch("empty", "cors"),
    )


def _post_fields(rng: Random, host: str, body: str) -> Fields:
    return (
        ("Accept", "application/json"),
        *_usual(),
        ("Referer", f"https://{host}/products/{_word(rng)}-{rng.randrange(5000)}"),
        ("Content-Type", "application/json" if body[:1] == "{" else "application/x-www-form-urlencoded"),
        ("X-CSRF-Token", f"{rng.getrandbits(256):064x}"),
        ("Content-Length", str(len(body))),
        ("Origin", f"https://{host}"),
        ("Connection", "keep-alive"),
        ("Cookie", _cookies(rng)),
        *_fetch("empty", "cors"),
    )


def _asset_fields(rng: Random, host: str, _: str) -> Fields:
    return (
        ("Accept", "image/avif,image/webp,*/*"),
        *_usual(),
        ("Connection", "keep-alive"),
        ("Referer", f"https://{host}/products/{_word(rng)}-{rng.randrange(5000)}"),
        ("Cookie", _cookies(rng)),
        *_fetch("image", "no-cors"),
        ("If-Modified-Since", _DATE),
        ("If-None-Match", f'"{rng.getrandbits(128):032x}"'),
    )


_FIELDS: Final[dict[str, Callable[[Random, str, str], Fields]]] = {
    "/products/": _page_fields,
    "/categories/": _page_fields,
    "/api/items/": _api_fields,
    "/api/carts/": _post_fields,
    "/sign-in/": _post_fields,
    "/assets/": _asset_fields,
    "/go/": _page_fields,
}


def _json_body(rng: Random, number: int) -> str:
    items = ",".join(
        f'{{"sku":"{rng.getrandbits(48):x}","count":{rng.randrange(9)}}}' for _ in range(rng.randrange(1, 12))
    )
    return f'{{"number":{number},"note":"{_word(rng)}","items":[{items}]}}'


def _form_body(rng: Random, number: int) -> str:
    return f"name={_word(rng)}%40example.com&authenticity_token={rng.getrandbits(256):064x}&n={number}"


_BODIES: Final[dict[str, Callable[[Random, int], str]]] = {"/api/carts/": _json_body, "/sign-in/": _form_body}


def _usual() -> Fields:
    return (("Accept-Language", "en-US,en;q=0.5"), ("Accept-Encoding", "gzip, deflate, br, zstd"))


def _fetch(destination: str, mode: str) -> Fields:
    return (("Sec-Fetch-Dest", destination), ("Sec-Fetch-Mode", mode), ("Sec-Fetch-Site", "same-origin"))


def _cookies(rng: Random) -> str:
    """Return a session and what other parties leave there: 150 bytes to 1.2 KB."""
    others = "".join(
        f"; _ga_{rng.getrandbits(32):08X}=GS1.1.{rng.getrandbits(64)}" for _ in range(rng.choice((1, 2, 4, 25)))
    )
    return f"_shop_session={rng.getrandbits(512):0128x}; theme=light{others}"


def _word(rng: Random) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randrange(3, 12)))


# What origins answer ----------------------------------------------------------------------------------------


def _answer(kind: Kind, mark: str, target: str) -> bytes:
    body = kind.body.format(mark=mark, target=target, kb=_PIECE)
    fields = [("Server", "origin"), ("Date", _DATE)]
    fields += [("Content-Type", kind.content_type), ("Content-Length", str(len(body)))] if kind.content_type else []
    fields += [("Connection", "keep-alive"), ("Keep-Alive", "timeout=600")]
    fields += [(name, value.format(mark=mark)) for name, value in kind.answer_fields]
    lines = [f"HTTP/1.1 {kind.status} Anything", *(f"{name}: {value}" for name, value in fields), "", body]
    return "\r\n".join(lines).encode("ascii")


def _location(kind: Kind) -> str:
    fields = "".join(
        f'    add_header {name} "{_escaped(value.format(mark="$request_id"))}" always;\n'
        for name, value in kind.answer_fields
        if name != "Location"
    )
    body = _escaped(kind.body.format(mark="$request_id", target="$request_uri", kb="$kb"))
    location = next((value.format(mark="$request_id") for name, value in kind.answer_fields if name == "Location"), "")
    return (
        f'  location ^~ {kind.path} {{\n    default_type "{kind.content_type or "text/plain"}";\n{fields}'
        f'    return {kind.status} "{location or body}";\n  }}\n'
    )


def _escaped(text: str) -> str:
    """Return the text as it stands between quotation marks in nginx' configuration."""
    return text.replace("\\", "\\\\").replace('"', '\\"')
