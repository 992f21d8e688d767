"""What `bench.compare` compares: the cases, and the bar we set ourselves in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase

HTTP, HTTPS = "http", "https"
KB, KB_64, MB = "/1k", "/64k", "/1m"
DIFFERENT = "/different"  # 1 KB, with an ETag, a cookie and a request id of its own in each response
SIZED = "/sized"  # as DIFFERENT, behind it one of the sizes
SIZED_BYTES = {f"{SIZED}-{size}": size for size in (200, 1_000, 3_000, 8_000, 20_000)}
NOT_MODIFIED, MISSING, REDIRECT = "/not-modified", "/missing", "/redirect"
TWO_COOKIES, MANY_FIELDS, GZIP = "/two-cookies", "/many-fields", "/gzip"
BODY_BYTES = {KB: 1024, KB_64: 65_536, MB: 1 << 20}


class Load(Enum):
    """How a case is loaded: the requests that are sent."""

    TYPICAL = "pages, JSON, posts, forms, 304s and redirects; no two requests and no two responses alike"
    SAME = "the same request again and again"
    VARIED = "every header block different"
    SIZES = "every header block different, one of five targets after another"
    LONG_COOKIES = "every header block different, 2 KB of cookies in each"
    SHORT = "every header block different; a connection ends behind one to ten requests"
    POST = "every header block different, with a body of 200 bytes of JSON"
    HEAD = "every header block different, the method HEAD"
    HOST_LAST = "the same request again and again, its Host last"
    HOST_LAST_VARIED = "every header block different, Host last"
    PAGE = "a recorded browser's page load, its 41 requests in turn"
    NEW = "a new connection, with a whole TLS handshake, for each request"
    RETURNING = "a new connection for each request, whose client offers the session of its last one"
    MANY = "1,000 domains in turn; over TLS a new connection, for the next name, after ten requests"
    HTTP2_1 = "HTTP/2, paths differ, one stream at a time on each of 32 connections"
    HTTP2_10 = "HTTP/2, paths differ, ten streams at a time on each of 32 connections"
    HTTP2_COOKIES_1 = "HTTP/2, paths and cookies differ, one stream at a time on each of 32 connections"
    HTTP2_COOKIES_10 = "HTTP/2, paths and cookies differ, ten streams at a time on each of 32 connections"
    HTTP2_KINDS_1 = "HTTP/2, a page's requests, one stream at a time on each of 32 connections"
    HTTP2_KINDS_10 = "HTTP/2, a page's requests, ten streams at a time on each of 32 connections"
    SOCKET = "WebSocket messages of 64 bytes, echoed by the origin"


@dataclass(frozen=True, slots=True)
class CostLimit:
    """A goal: ours may cost at most `factor` times what `peer` costs."""

    factor: float
    peer: str

    def __str__(self) -> str:
        return f"≤ {self.peer}" if self.factor == 1 else f"≤ {self.factor:g} × {self.peer}"


@dataclass(frozen=True, slots=True)
class Case:
    """One case of the comparison. Without a `bar` the figures are only shown."""

    key: str
    title: str
    scheme: str
    load: Load
    path: str = KB
    bar: CostLimit | None = None
    is_origin_secure: bool = False
    logs: bool = False


@dataclass(frozen=True, slots=True)
class CaseVerdict:
    """Whether a case meets its goal. `ratio` is our cost divided by that of the goal's peer."""

    ratio: float
    is_met: bool


CASES = (
    Case(
        "typical",
        "typical mix, TLS on both sides, log",
        HTTPS,
        Load.TYPICAL,
        bar=CostLimit(1.35, "nginx"),
        is_origin_secure=True,
        logs=True,
    ),
    Case(
        "http-responses", "http 1 KB, varied, responses differ", HTTP, Load.VARIED, DIFFERENT, CostLimit(1.35, "nginx")
    ),
    Case(
        "https-responses",
        "https 1 KB, varied, responses differ",
        HTTPS,
        Load.VARIED,
        DIFFERENT,
        CostLimit(1.35, "nginx"),
    ),
    Case("http-post", "http POST of 200 bytes, varied", HTTP, Load.POST, bar=CostLimit(1.45, "nginx")),
    Case("http-log", "http 1 KB, varied, access log", HTTP, Load.VARIED, bar=CostLimit(1.35, "nginx"), logs=True),
    Case(
        "http-origin-tls",
        "http 1 KB, varied, origin over TLS",
        HTTP,
        Load.VARIED,
        bar=CostLimit(1.4, "nginx"),
        is_origin_secure=True,
    ),
    Case(
        "https-both-log",
        "TLS on both sides, varied, responses differ, log",
        HTTPS,
        Load.VARIED,
        DIFFERENT,
        CostLimit(1.35, "nginx"),
        is_origin_secure=True,
        logs=True,
    ),
    *(
        Case(f"http-{key}", f"http, varied, responses differ, {what}", HTTP, load, path)
        for key, what, load, path in (
            ("sizes", "0.2 to 20 KB", Load.SIZES, SIZED),
            ("304", "304", Load.VARIED, NOT_MODIFIED),
            ("404", "404", Load.VARIED, MISSING),
            ("302", "302", Load.VARIED, REDIRECT),
            ("two-cookies", "Set-Cookie twice", Load.VARIED, TWO_COOKIES),
            ("long-cookies", "2 KB of cookies", Load.LONG_COOKIES, DIFFERENT),
            ("fields", "30 fields", Load.VARIED, MANY_FIELDS),
            ("gzip", "gzip", Load.VARIED, GZIP),
            ("short", "1 to 10 requests a connection", Load.SHORT, DIFFERENT),
            ("head", "HEAD", Load.HEAD, DIFFERENT),
        )
    ),
    Case("http-1k", "http 1 KB", HTTP, Load.SAME, bar=CostLimit(1, "nginx")),
    Case("http-1k-varied", "http 1 KB, varied", HTTP, Load.VARIED, bar=CostLimit(1.25, "nginx")),
    Case("http-host-last", "http 1 KB, Host last", HTTP, Load.HOST_LAST),
    Case("http-host-last-varied", "http 1 KB, Host last, varied", HTTP, Load.HOST_LAST_VARIED),
    Case("http-page", "http page load", HTTP, Load.PAGE),
    Case("http-many", "http 1,000 domains", HTTP, Load.MANY),
    Case("https-1k", "https 1 KB", HTTPS, Load.SAME, bar=CostLimit(1, "HAProxy")),
    Case("https-1k-varied", "https 1 KB, varied", HTTPS, Load.VARIED),
    Case("https-page", "https page load", HTTPS, Load.PAGE),
    Case("https-new", "https new connections", HTTPS, Load.NEW, bar=CostLimit(1.25, "nginx")),
    Case("https-returning", "https resumed TLS connections", HTTPS, Load.RETURNING, bar=CostLimit(1.25, "nginx")),
    Case("https-many", "https 1,000 domains", HTTPS, Load.MANY),
    Case("http-64k", "http 64 KB", HTTP, Load.SAME, KB_64, CostLimit(1, "HAProxy")),
    Case("http-64k-varied", "http 64 KB, varied", HTTP, Load.VARIED, KB_64, CostLimit(1, "HAProxy")),
    Case("https-64k", "https 64 KB", HTTPS, Load.SAME, KB_64, CostLimit(1, "nginx")),
    Case("http-1m", "http 1 MB", HTTP, Load.SAME, MB, CostLimit(0.8, "nginx")),
    Case("https-1m", "https 1 MB", HTTPS, Load.SAME, MB, CostLimit(1, "nginx")),
    Case(
        "h2-responses-10", "h2 1 KB, responses differ, -m 10", HTTPS, Load.HTTP2_10, DIFFERENT, CostLimit(1.35, "nginx")
    ),
    Case("h2-responses", "h2 1 KB, responses differ, -m 1", HTTPS, Load.HTTP2_1, DIFFERENT, CostLimit(1.6, "nginx")),
    Case(
        "h2-cookies-10",
        "h2 1 KB, cookies and responses differ, -m 10",
        HTTPS,
        Load.HTTP2_COOKIES_10,
        DIFFERENT,
        CostLimit(1.35, "nginx"),
    ),
    Case(
        "h2-cookies",
        "h2 1 KB, cookies and responses differ, -m 1",
        HTTPS,
        Load.HTTP2_COOKIES_1,
        DIFFERENT,
        CostLimit(1.6, "nginx"),
    ),
    Case("h2-kinds-10", "h2 1 KB, a page's requests, responses differ, -m 10", HTTPS, Load.HTTP2_KINDS_10, DIFFERENT),
    Case("h2-kinds", "h2 1 KB, a page's requests, responses differ, -m 1", HTTPS, Load.HTTP2_KINDS_1, DIFFERENT),
    Case("h2-64k", "h2 64 KB, -m 1", HTTPS, Load.HTTP2_1, KB_64, CostLimit(1, "nginx")),
    Case("h2-1m", "h2 1 MB, -m 1", HTTPS, Load.HTTP2_1, MB, CostLimit(1, "nginx")),
    Case("ws", "WebSocket message", HTTP, Load.SOCKET),
    Case("wss", "WebSocket over TLS", HTTPS, Load.SOCKET),
)


def select(patterns: str | None) -> tuple[Case, ...]:
    """Return the cases whose keys match one of the comma-separated patterns (``https-*``), or all without any.

    Raises: ValueError for a pattern that matches nothing.
    """
    if not patterns:
        return CASES
    wanted = [pattern.strip() for pattern in patterns.split(",")]
    for pattern in wanted:
        if not any(fnmatchcase(case.key, pattern) for case in CASES):
            raise ValueError(f"no case {pattern}: there are {', '.join(case.key for case in CASES)}")
    return tuple(case for case in CASES if any(fnmatchcase(case.key, pattern) for pattern in wanted))


def judge(case: Case, costs: Mapping[str, float], ours: str) -> CaseVerdict | None:
    """Compare our cost with the goal; `costs` are by peer.

    None when there is no goal, or one of the two costs is missing.
    """
    if case.bar is None or ours not in costs or case.bar.peer not in costs:
        return None
    ratio = costs[ours] / costs[case.bar.peer]
    return CaseVerdict(ratio, ratio <= case.bar.factor)
