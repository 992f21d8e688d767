"""Two tenants' traffic through one edge, generated from a seed, with a judge: nothing of one may reach the other.

Owns the generated requests, the origin that answers them, the client, and the comparison with what each must be. The
requests and the responses of both tenants differ in little more than a token of equal length, so that all that is
remembered of heads, and every connection that is used again, could be taken for the other's. Must not know how the
edge remembers or reuses.

Rules
    a token names its tenant, its sequence and its request, and stands in every part of a request and of its response
    the origin is strict: a head, a body or a trailer that has another token than the request line is a `Crossing`
    a response is the expected one to the byte, a beginning of it where the origin broke it off, or the edge's own
    a request that may not be repeated reaches an origin at most once
    the tenant's X-Service-Auth and forwarded host stand in each of its requests, the other's never
"""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Final

from tests.component.peers import PATIENCE_SECONDS, Edge, Origin, Wire, origin
from tests.waiting import let_run

TENANTS: Final = ("a", "b")
_TOKEN: Final = re.compile(rb"tenant-([ab])-(\d{7})-(\d{2})")
_METHODS: Final = ("GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "PATCH")
_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
_IDEMPOTENT: Final = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_STATUSES: Final = (200, 200, 200, 201, 204, 302, 304, 404, 500)
_BODILESS: Final = frozenset({204, 304})
_FRAMES: Final = ("length", "length", "chunked", "trailers", "close")
_EDGE_STATUSES: Final = frozenset({502, 504})
_INTERIM: Final = b"HTTP/1.1 103 Early Hints\r\nLink: </%b>; rel=preload\r\n\r\n"
_ALIKE: Final = (
    b"HTTP/1.1 302 Alike\r\nDate: Thu, 01 Jan 2026 00:00:00 GMT\r\nLocation: http://ORIGIN/next\r\n"
    b"Access-Control-Allow-Origin: http://ORIGIN\r\nLink: <http://ORIGIN/style>; rel=preload\r\n"
    b"Set-Cookie: a=1; Domain=127.0.0.1; Path=/\r\nContent-Length: 5\r\n\r\n"
)
_CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
_TURNS: Final = 4  # of the loop
_FEW, _MANY = 3, 4000  # how often the token stands in a body


class Crossing(AssertionError):
    """Something of one request was seen in another."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request and what its origin does.

    `is_alike`: it answers both tenants with the same bytes, whose addresses the edge maps to the domain that was asked
    for. `cut`: the origin ends the connection behind so many bytes of its response. `leaves`: the client ends its own
    behind so many bytes of the request. `pauses`: it sends the rest of the request in a segment of its own. `is_early`:
    the origin answers before it reads the body."""

    tenant: str
    token: bytes
    is_alike: bool
    method: str
    status: int
    frame: str
    copies: int
    sent_copies: int
    is_chunked: bool
    expects: bool
    is_early: bool
    has_hints: bool
    closes: bool
    cut: int | None
    leaves: int | None
    pauses: int | None
    shuffle: int

    @property
    def host(self) -> bytes:
        return b"shop-%b.example.com" % self.tenant.encode()

    @property
    def body(self) -> bytes:
        return self.token * self.sent_copies if self.method in _WITH_BODY else b""

    @property
    def has_content(self) -> bool:
        return self.method != "HEAD" and self.status not in _BODILESS

    def request(self) -> bytes:
        """The head."""
        fields = [
            b"Accept: text/html",
            b"Cookie: session=%b; theme=light" % self.token,
            b"Authorization: Bearer %b" % self.token,
            b"User-Agent: client/1",
            b"X-Token: %b" % self.token,
        ]
        Random(self.shuffle).shuffle(fields)
        if self.method in _WITH_BODY:
            fields.append(b"Transfer-Encoding: chunked" if self.is_chunked else b"Content-Length: %d" % len(self.body))
        if self.expects:
            fields.append(b"Expect: 100-continue")
        line = b"%b /p/%b?t=%b HTTP/1.1\r\nHost: %b\r\n" % (self.method.encode(), self.token, self.token, self.host)
        return line + b"\r\n".join(fields) + b"\r\n\r\n"

    def sent_body(self) -> bytes:
        if self.method not in _WITH_BODY or not self.is_chunked:
            return self.body
        return _chunked(self.body) + b"0\r\nX-Trailer: %b\r\n\r\n" % self.token

    def answer(self) -> bytes:
        """All that the origin sends behind interim responses."""
        if self.is_alike:
            return _ALIKE + (b"alike" if self.has_content else b"")
        content = self.token * self.copies
        fields = [
            b"Date: Thu, 01 Jan 2026 00:00:00 GMT",
            b"Content-Type: text/plain",
            b'ETag: "%b"' % self.token,
            b"Set-Cookie: session=%b; Path=/" % self.token,
            b"X-Token: %b" % self.token,
        ]
        if self.status == 302:
            fields.append(b"Location: https://elsewhere.example/%b" % self.token)
        if self.closes or self.frame == "close":
            fields.append(b"Connection: close")
        if self.status == 204:
            content = b""
        elif self.frame in ("chunked", "trailers"):
            fields.append(b"Transfer-Encoding: chunked")
            trailer = b"X-Trailer: %b\r\n" % self.token if self.frame == "trailers" else b""
            content = _chunked(content) + b"0\r\n" + trailer + b"\r\n"
        elif self.frame == "length":
            fields.append(b"Content-Length: %d" % len(content))
        head = b"HTTP/1.1 %d X\r\n" % self.status + b"\r\n".join(fields) + b"\r\n\r\n"
        return head + (content if self.has_content else b"")


def _chunked(content: bytes) -> bytes:
    half = len(content) // 2
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (content[:half], content[half:]) if part)


def generate(seed: int) -> list[Asked]:
    """Return the requests of one connection; most are ordinary, so that much is remembered."""
    rng = Random(seed)
    return [_generate_one(rng, seed, number) for number in range(rng.choice((1, 2, 4, 8)))]


def _generate_one(rng: Random, seed: int, number: int) -> Asked:
    is_odd, is_alike, tenant = rng.random() < 0.4, rng.random() < 0.2, rng.choice(TENANTS)
    method = rng.choice(_METHODS)
    status, frame = (rng.choice(_STATUSES), rng.choice(_FRAMES)) if is_odd else (200, "length")
    status, frame = (302, "length") if is_alike else (status, frame)
    return Asked(
        tenant,
        b"tenant-%b-%07d-%02d" % (tenant.encode(), seed, number),
        is_alike,
        method,
        status,
        frame,
        copies=rng.choice((1, _FEW, _FEW, _MANY if is_odd else _FEW)),
        sent_copies=rng.choice((0, 1, _FEW, _MANY if is_odd else _FEW)),
        is_chunked=method in _WITH_BODY and rng.random() < 0.3,
        expects=method in _WITH_BODY and is_odd and rng.random() < 0.3,
        is_early=method in _WITH_BODY and is_odd and rng.random() < 0.2,
        has_hints=is_odd and rng.random() < 0.2,
        closes=is_odd and not is_alike and rng.random() < 0.2,
        cut=rng.randrange(600) if is_odd and rng.random() < 0.25 else None,
        leaves=_place(rng) if is_odd and rng.random() < 0.15 else None,
        pauses=_place(rng) if rng.random() < 0.2 else None,
        shuffle=rng.randrange(3),
    )


def _place(rng: Random) -> int:
    """Return a number of bytes of a request: any, or about as many as its request line has."""
    return rng.choice((rng.randrange(600), rng.randrange(55, 63)))


@dataclass
class Tally:
    sequences: int = 0
    requests: int = 0
    whole: int = 0
    broken_off: int = 0
    by_edge: int = 0
    repeated: int = 0
    """Requests that reached an origin twice, as idempotent ones may."""

    def __str__(self) -> str:
        return (
            f"{self.sequences} sequences, {self.requests} requests: {self.whole} whole, {self.broken_off} broken off,"
            f" {self.by_edge} answered by the edge, {self.repeated} sent to an origin twice; nothing crossed"
        )


@dataclass
class World:
    """Two tenants at one edge. `shared`: the origin that both applications have."""

    edge: Edge
    origin_port: int
    service_auth: Mapping[str, bytes]
    asked: dict[bytes, Asked] = field(default_factory=dict)
    arrived: dict[bytes, int] = field(default_factory=dict)
    crossings: list[str] = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    # The origin ---------------------------------------------------------------------------------------------------

    async def serve(self, wire: Wire) -> None:
        """Follow the script of each request that comes on the connection."""
        while True:
            head = await wire.head()
            asked = self._identify(head)
            if asked is None:
                return
            if asked.is_early:
                await self._answer(wire, asked)
                return
            if b"100-continue" in head.lower():
                await wire.send(_CONTINUE)
            self._compare("body", asked, await _read_body(wire, head))
            if not await self._answer(wire, asked):
                return

    def _identify(self, head: bytes) -> Asked | None:
        """Return what was asked by this head. Notes a head that is not exactly one request's."""
        found = _TOKEN.search(head.partition(b"\r\n")[0])
        asked = self.asked.get(found[0]) if found is not None else None
        if asked is None:
            self.crossings.append(f"no request has this head: {head[:300]!r}")
            return None
        self._compare("head", asked, head)
        fields = dict(line.lower().partition(b": ")[::2] for line in head.split(b"\r\n")[1:] if line)
        wanted = {
            b"x-forwarded-host": asked.host,
            b"x-service-forwarded-host": asked.host,
            b"x-service-auth": self.service_auth.get(asked.tenant, b"").lower(),
            b"x-token": asked.token,
        }
        for name, value in wanted.items():
            if fields.get(name, b"") != value:
                self.crossings.append(f"{asked.token!r}: {name!r} is {fields.get(name)!r}")
        self.arrived[asked.token] = count = self.arrived.get(asked.token, 0) + 1
        if count > (2 if asked.method in _IDEMPOTENT else 1):
            self.crossings.append(f"{asked.token!r}: {asked.method} was sent {count} times")
        return asked

    async def _answer(self, wire: Wire, asked: Asked) -> bool:
        """Return whether the connection goes on."""
        if asked.has_hints:
            await wire.send(_INTERIM % asked.token)
        authority = b"127.0.0.1:%d" % self.origin_port
        await wire.send(asked.answer().replace(b"ORIGIN", authority)[: asked.cut])
        return asked.cut is None and not asked.closes and asked.frame != "close"

    # The client ---------------------------------------------------------------------------------------------------

    async def run(self, seed: int) -> None:
        """Send the requests of one connection, and judge what comes back. Raises: `Crossing`."""
        sequence = generate(seed)
        self.asked.update({each.token: each for each in sequence})
        is_pipelined = seed % 3 == 0 and not any(each.expects or each.leaves is not None for each in sequence)
        wire = Wire(*await asyncio.open_connection("127.0.0.1", self.edge.port))
        try:
            if is_pipelined:
                await wire.send(b"".join(each.request() + each.sent_body() for each in sequence))
            for each in sequence:
                self.tally.requests += 1
                if not await self._exchange(wire, each, is_sent=is_pipelined):
                    break
        finally:
            await wire.closed()
        self._settle(sequence)

    def _settle(self, sequence: Sequence[Asked]) -> None:
        """Forget the sequence. Raises: `Crossing`."""
        self.tally.sequences += 1
        self.tally.repeated += sum(self.arrived.get(each.token, 0) > 1 for each in sequence)
        if self.crossings:
            raise Crossing("\n".join(self.crossings))

    async def _exchange(self, wire: Wire, asked: Asked, *, is_sent: bool) -> bool:
        """Return whether the connection goes on."""
        whole = asked.request() + asked.sent_body()
        try:
            if asked.leaves is not None and asked.leaves < len(whole):
                await wire.send(whole[: asked.leaves])
                return False
            if not is_sent:
                first = asked.request() if asked.expects else whole
                await wire.send(first[: asked.pauses])
                if asked.pauses is not None:
                    await let_run(_TURNS)  # until the edge has read it
                    await wire.send(first[asked.pauses :])
            return await self._receive(wire, asked)
        except ConnectionError:
            self.tally.broken_off += 1
            return False

    async def _receive(self, wire: Wire, asked: Asked) -> bool:
        received, is_whole = b"", not asked.expects
        try:
            while (head := await wire.head()).startswith(b"HTTP/1.1 1"):
                self._compare("interim response", asked, head)
                if b" 100 " in head[:16]:
                    is_whole = True
                    await wire.send(asked.sent_body())
            received = head
            self._compare("response head", asked, head)
            status = int(head[9:12])
            content = await _read_content(wire, head, asked.method, status)
        except asyncio.IncompleteReadError as error:
            self._compare("response", asked, received + error.partial)
            self.tally.broken_off += 1
            return False
        self._compare("response body", asked, content)
        self._judge(asked, head, status, content)
        return is_whole and b"connection: close" not in head.lower()

    def _judge(self, asked: Asked, head: bytes, status: int, content: bytes) -> None:
        if head.startswith(b"HTTP/1.1 302 Alike"):
            self._judge_alike(asked, head, content)
            return
        if asked.token not in head:
            self.tally.by_edge += 1
            if status not in _EDGE_STATUSES:
                self.crossings.append(f"{asked.token!r}: {status} without its token: {head!r}")
            return
        wanted = asked.token * asked.copies if asked.has_content else b""
        is_whole = content == wanted or (
            asked.frame == "close" and asked.cut is not None and wanted.startswith(content)
        )
        if status != asked.status or not is_whole:
            self.crossings.append(f"{asked.token!r}: {status}, {len(content)} bytes: {head!r}")
        self.tally.whole += 1

    def _judge_alike(self, asked: Asked, head: bytes, content: bytes) -> None:
        addresses = (
            b"Location: https://%b/next\r\n",
            b"Allow-Origin: https://%b\r\n",
            b"<https://%b/style>",
            b"Domain=%b;",
        )
        is_mapped = all(address % asked.host in head for address in addresses)
        if not (asked.is_alike and is_mapped and content == (b"alike" if asked.has_content else b"")):
            self.crossings.append(f"{asked.token!r}: {head!r} {content!r}")
        self.tally.whole += 1

    def _compare(self, what: str, asked: Asked, data: bytes) -> None:
        for found in _TOKEN.finditer(data):
            if found[0] != asked.token:
                self.crossings.append(f"{what} of {asked.token!r} has {found[0]!r}: {data[:1000]!r}")
                return


async def _read_body(wire: Wire, head: bytes) -> bytes:
    """Return the body of a request, trailers included."""
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        return await _read_chunks(wire)
    length = re.search(rb"content-length: (\d+)", lower)
    return await wire.exactly(int(length[1])) if length else b""


async def _read_content(wire: Wire, head: bytes, method: str, status: int) -> bytes:
    """Return the content of a response.

    Raises: `asyncio.IncompleteReadError` with all that came of one that was broken off.
    """
    lower = head.lower()
    if method == "HEAD" or status in _BODILESS:
        return b""
    if b"transfer-encoding: chunked" in lower:
        return _TRAILER.sub(b"", await _read_chunks(wire))
    length = re.search(rb"content-length: (\d+)", lower)
    return await wire.exactly(int(length[1])) if length else await wire.rest()


_TRAILER: Final = re.compile(rb"X-Trailer: [^\r]*\r\n", re.IGNORECASE)


async def _read_chunks(wire: Wire) -> bytes:
    """Return the content, and the lines of the trailer behind it."""
    content = b""
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            while size := int(await wire.reader.readuntil(b"\r\n"), 16):
                content += (await wire.reader.readexactly(size + 2))[:-2]
            while (line := await wire.reader.readuntil(b"\r\n")) != b"\r\n":
                content += line
        except asyncio.IncompleteReadError as error:
            raise asyncio.IncompleteReadError(content + error.partial, None) from error
    return content


@asynccontextmanager
async def two_tenants(edge: Edge, service_auth: Mapping[str, bytes]) -> AsyncIterator[World]:
    """Both applications have the same origin, so that they share its connections; each has a secret of its own."""
    world = World(edge, 0, service_auth)
    async with origin(world.serve) as there:
        world.origin_port = there.port
        _enrol(world, there)
        yield world


def _enrol(world: World, there: Origin) -> None:
    for tenant in TENANTS:
        secret = world.service_auth.get(tenant)
        application = f"app-{tenant}"
        sealed = secret and world.edge.keyring.seal(secret, f"application/{application}/service-auth")
        service_auth = sealed and base64.encodebytes(sealed).decode()
        host = f"shop-{tenant}.example.com"
        world.edge.replica.enrol(host, there.url, application=application, service_auth=service_auth)
    world.edge.change()


async def run_all(world: World, seeds: Iterator[int], *, at_once: int) -> Tally:
    """Run sequences until one crosses or `seeds` ends. Raises: an `ExceptionGroup` with the `Crossing` and its seed."""

    async def follow() -> None:
        for seed in seeds:
            try:
                await world.run(seed)
            except BaseException as error:
                error.add_note(f"seed {seed}")
                raise

    async with asyncio.TaskGroup() as group:
        for _ in range(at_once):
            group.create_task(follow())
    return world.tally
