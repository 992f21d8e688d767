"""The judge of a conversation: h11 reads what was sent and what arrived, and both must mean the same.

What a message means is its start line, its end-to-end fields and its body. The rules about which fields end here, and
which are ours to state, are written down a second time, from the specification rather than from the code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import h11

from tests.unit.edge.link import CLIENT_ADDRESS, Link

MAX_BYTES = 1 << 24
MARK = b"x-origin"  # on every answer an `AskingOrigin` gives: which of its requests it is for
Fields = tuple[tuple[bytes, bytes], ...]


class Disagreement(AssertionError):
    """What arrived does not mean what was sent."""


class Request(NamedTuple):
    method: bytes
    target: bytes
    minor: int
    fields: Fields
    body: bytes
    is_complete: bool
    raw: bytes


class Response(NamedTuple):
    status: int
    minor: int
    fields: Fields
    body: bytes
    is_complete: bool
    interim: tuple[tuple[int, Fields], ...]
    trailers: Fields = ()

    def get(self, name: bytes) -> bytes | None:
        return next((value for key, value in self.fields if key == name), None)


# Reading --------------------------------------------------------------------------------------------------------


class Stream(NamedTuple):
    """The requests h11 finds in a stream, what follows the last complete one, and what h11 has against that."""

    requests: list[Request]
    rest: bytes
    problem: str


def read_requests(stream: bytes) -> Stream:
    requests: list[Request] = []
    while True:
        stream = re.sub(rb"\A(?:\r\n)+", b"", stream)  # RFC 9112 §2.2; h11 takes them for no request line
        if not stream:
            return Stream(requests, b"", "")
        server = h11.Connection(h11.SERVER, MAX_BYTES)
        server.receive_data(stream)
        head: h11.Request | None = None
        body, is_complete, problem = b"", False, ""
        try:
            event = server.next_event()
            if not isinstance(event, h11.Request):
                return Stream(requests, stream, "" if event is h11.NEED_DATA else repr(event))
            head = event
            while isinstance(event := server.next_event(), h11.Data):
                body += event.data
            is_complete = isinstance(event, h11.EndOfMessage)
        except h11.RemoteProtocolError as error:
            problem = str(error) or "refused"
        rest = server.trailing_data[0] if is_complete else b""
        if head is not None:
            raw = stream[: len(stream) - len(rest)]
            minor = int(head.http_version[-1:])
            requests.append(Request(head.method, head.target, minor, _pairs(head.headers), body, is_complete, raw))
        if not is_complete:
            return Stream(requests, stream, problem)
        stream = rest


def read_responses(stream: bytes, methods: Sequence[bytes], *, ended: bool) -> tuple[list[Response], bytes, str]:
    """The responses to `methods` h11 finds in `stream`, bytes beyond them, and what it has against them.

    `ended`: the stream came to an orderly end.
    """
    responses: list[Response] = []
    for method in methods:
        if not stream:
            return responses, b"", ""
        client = h11.Connection(h11.CLIENT, MAX_BYTES)
        client.send(h11.Request(method=method, target="/", headers=[("Host", "a"), ("Upgrade", "x")]))
        client.send(h11.EndOfMessage())
        client.receive_data(stream)
        if ended:
            client.receive_data(b"")
        response, rest, problem = _read_response(client)
        if response is not None:
            responses.append(response)
        if response is None or not response.is_complete:
            return responses, b"", problem
        if response.status == 101:
            return responses, rest, ""
        stream = rest
    return responses, stream, ""


def _read_response(client: h11.Connection) -> tuple[Response | None, bytes, str]:
    interim: list[tuple[int, Fields]] = []
    final: h11.Response | None = None
    body, is_complete, problem = b"", False, ""
    trailers: Fields = ()
    try:
        while isinstance(event := client.next_event(), h11.InformationalResponse) and event.status_code != 101:
            interim.append((event.status_code, _pairs(event.headers)))
        if isinstance(event, h11.InformationalResponse):
            rest = client.trailing_data[0]
            return Response(101, 1, _pairs(event.headers), b"", True, tuple(interim)), rest, ""
        if isinstance(event, h11.Response):
            final = event
            while isinstance(event := client.next_event(), h11.Data):
                body += event.data
            if isinstance(event, h11.EndOfMessage):
                is_complete, trailers = True, _pairs(event.headers)
    except h11.RemoteProtocolError as error:
        problem = str(error) or "refused"
    if final is None:
        return None, b"", problem
    rest = client.trailing_data[0] if is_complete else b""
    response = Response(
        final.status_code,
        int(final.http_version[-1:]),
        _pairs(final.headers),
        body,
        is_complete,
        tuple(interim),
        trailers,
    )
    return response, rest, problem


def _pairs(fields: Iterable[tuple[bytes, bytes]]) -> Fields:
    return tuple((bytes(name), bytes(value)) for name, value in fields)


# What must be the same ------------------------------------------------------------------------------------------

_HOP = frozenset(
    b"connection keep-alive proxy-connection te trailer transfer-encoding upgrade proxy-authenticate"
    b" proxy-authorization proxy-authentication-info http2-settings content-length host expect via proxy".split()
)
_OURS = frozenset(
    b"x-forwarded-for x-forwarded-ip x-forwarded-host x-forwarded-proto x-forwarded-port x-service-forwarded-host"
    b" x-service-auth forwarded x-real-ip x-forwarded-ssl x-forwarded-server x-original-url x-rewrite-url".split()
)
CONNECTION_WORDS = frozenset({b"close", b"keep-alive", b"upgrade"})


def end_to_end(fields: Fields) -> Fields:
    """The fields that are meant for the other end, and not ours to state."""
    named = tokens_in(fields, b"connection") - CONNECTION_WORDS
    gone = _HOP | _OURS | named
    return tuple(
        (name, value)
        for name, value in fields
        if name not in gone and not ("_" in name.decode() and name.replace(b"_", b"-") in _HOP | _OURS)
    )


def tokens_in(fields: Fields, name: bytes) -> set[bytes]:
    return {part.strip(b" \t").lower() for key, value in fields if key == name for part in value.split(b",")}


_BASES = {b"shop.example.com": b"", b"power.example.com": b"/base"}


def _host_and_target(request: Request) -> tuple[bytes, bytes]:
    target = request.target
    host = next((value for name, value in request.fields if name == b"host"), b"")
    if target[:1] != b"/" and target != b"*":
        host, slash, path = re.sub(rb"(?i)\Ahttps?://", b"", target).partition(b"/")
        if not slash:
            host, question, query = host.partition(b"?")
            path = question + query
            if request.method == b"OPTIONS" and not path:
                return host, b"*"
        target = b"/" + path
    return host, target


def _mapped(host: bytes, target: bytes) -> bytes:
    name = re.sub(rb":[0-9]*\Z", b"", host).removesuffix(b".").lower()
    if name not in _BASES:
        raise Disagreement(f"{host!r} is not enrolled, and was forwarded")
    base = _BASES[name]
    if target == b"*" or not base:
        return target
    return base + target[1:] if target == b"/" or target[:2] == b"/?" else base + target


# A forwarded head, in its one possible spelling.
_STRICT_HEAD = re.compile(
    rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+ [!-~]+ HTTP/1\.1"
    rb"(?:\r\n[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t \x21-\x7e\x80-\xff]*)+\r\n\r\n"
)
_STRICT_CHUNK = re.compile(rb"([1-9a-f][0-9a-f]*)\r\n")
# The last chunk and the trailers behind it, as strict as a head's fields.
_STRICT_END = re.compile(rb"0\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t \x21-\x7e\x80-\xff]*\r\n)*\r\n")


def check_spelling(request: Request) -> None:
    """What was forwarded must be one message to the strictest and to the most lenient reader."""
    head, empty_line, body = request.raw.partition(b"\r\n\r\n")
    if _STRICT_HEAD.fullmatch(head + empty_line) is None:
        raise Disagreement(f"a forwarded head is not strict: {head!r}")
    names = [line.partition(b":")[0].lower() for line in head.split(b"\r\n")[1:]]  # h11 makes equal lengths one
    if names.count(b"host") != 1 or names.count(b"content-length") + names.count(b"transfer-encoding") > 1:
        raise Disagreement(f"a forwarded head is ambiguous: {head!r}")
    if b"transfer-encoding" in names and request.is_complete and _unchunked(body) != request.body:
        raise Disagreement(f"a forwarded coding is not strict: {body!r}")


def _unchunked(coded: bytes) -> bytes | None:
    content, position = b"", 0
    while (match := _STRICT_CHUNK.match(coded, position)) is not None:
        end = match.end() + int(match[1], 16)
        if coded[end : end + 2] != b"\r\n":
            return None
        content += coded[match.end() : end]
        position = end + 2
    return content if _STRICT_END.fullmatch(coded, position) else None


def check_same_request(sent: Request, arrived: Request) -> None:
    host, target = _host_and_target(sent)
    expected: dict[str, object] = {
        "method": sent.method,
        "target": _mapped(host, target),
        "fields": end_to_end(sent.fields),
        "complete": True if arrived.is_complete else sent.is_complete and arrived.is_complete,
        "client": [CLIENT_ADDRESS.encode()] * 2,
        "host": [host],
    }
    ours = dict(arrived.fields)
    seen: dict[str, object] = {
        "method": arrived.method,
        "target": arrived.target,
        "fields": end_to_end(arrived.fields),
        "complete": arrived.is_complete and sent.is_complete,
        "client": [ours.get(b"x-forwarded-for"), ours.get(b"x-forwarded-ip")],
        "host": [value for name, value in arrived.fields if name == b"x-forwarded-host"],
    }
    if expected != seen:
        raise Disagreement(f"sent {expected}, arrived {seen}")
    if arrived.body != sent.body if arrived.is_complete else not sent.body.startswith(arrived.body):
        raise Disagreement(f"sent body {sent.body!r}, arrived {arrived.body!r}")
    if not tokens_in(arrived.fields, b"connection") <= {b"upgrade", b"te"}:
        raise Disagreement(f"forwarded {arrived.fields}")


# Requests: a whole conversation ---------------------------------------------------------------------------------


class AskingOrigin:
    """Answers each request that h11 finds, and marks the answer with the request's number on this connection."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.received = b""
        self._served = 0
        self._h11 = h11.Connection(h11.SERVER, MAX_BYTES)

    def receive(self, data: bytes) -> list[bytes | type[BaseException] | None]:
        self.received += data
        answers: list[bytes | type[BaseException] | None] = []
        self._h11.receive_data(data)
        try:
            while (event := self._h11.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if self._h11.they_are_waiting_for_100_continue:
                    answers.append(self._h11.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
                if isinstance(event, h11.EndOfMessage):
                    answers.append(self._answer())
                    self._h11.start_next_cycle()
        except h11.RemoteProtocolError as error:
            raise Disagreement(f"h11 refuses what was forwarded: {error}: {self.received!r}") from error
        return answers

    def _answer(self) -> bytes:
        mark = b"%d.%d" % (self.number, self._served)
        self._served += 1
        head = self._h11.send(h11.Response(status_code=200, headers=[(MARK, mark), (b"Content-Length", b"0")]))
        return (head or b"") + (self._h11.send(h11.EndOfMessage()) or b"")


class Tally(NamedTuple):
    forwarded: int
    refused: int


# h11 knows no white space before a chunk's extensions (RFC 9112 §7.1.1 has recipients read over it), and judges the
# framing fields that have no business in trailers, where we drop them unread.
H11_IS_STRICTER = re.compile(
    rb"\n[0-9a-fA-F]{1,15}[ \t]+;"
    rb"|\n0+[^\r\n]*\r\n(?:[^\r\n]+\r\n)*(?:transfer-encoding|content-length):",
    re.IGNORECASE,
)


def judge_requests(
    link: Link, pieces: Sequence[bytes], *, client_capacity: int = 1 << 30, upstream_capacity: int = 1 << 30
) -> Tally:
    """Send `pieces` from one client, and compare what they mean with what reached the origins.

    Raises: `Disagreement`.
    """
    sent = b"".join(pieces)
    machines: list[AskingOrigin] = []

    def machine() -> AskingOrigin:
        machines.append(AskingOrigin(len(machines)))
        return machines[-1]

    link.begin(machine, client_capacity=client_capacity, upstream_capacity=upstream_capacity)
    try:
        came = link.converse(list(pieces))
        return _compare(link, sent, came, machines)
    finally:
        link.end()


def _compare(link: Link, sent: bytes, came: bytes, machines: list[AskingOrigin]) -> Tally:
    meant, rest, problem = read_requests(sent)
    if problem and H11_IS_STRICTER.search(sent):
        return Tally(0, 0)
    methods = [request.method for request in meant]
    if not meant or meant[-1].is_complete:  # the rest may be refused
        methods.append(b"HEAD" if rest.startswith(b"HEAD ") else b"GET")
    arrived: dict[bytes, Request] = {}
    unfinished: list[Request] = []
    for machine in machines:
        requests, _, complaint = read_requests(machine.received)
        if complaint:
            raise Disagreement(f"h11 refuses what was forwarded: {complaint}: {machine.received!r}")
        for number, request in enumerate(requests):
            check_spelling(request)
            if request.is_complete:
                arrived[b"%d.%d" % (machine.number, number)] = request
            else:
                unfinished.append(request)
    ended = link.client.is_closing() or link.client.wrote_eof
    responses, beyond, complaint = read_responses(came, methods, ended=ended)
    if beyond or complaint or not all(response.is_complete for response in responses):
        raise Disagreement(f"the client cannot read {came!r} ({complaint}, {beyond!r} left)")
    if not ended and len(responses) < sum(request.is_complete for request in meant):
        raise Disagreement(f"no answer, and the connection stays: {sent!r}, came {came!r}")
    refused = 0
    for number, response in enumerate(responses):
        mark = response.get(MARK)
        if mark is None:
            refused += 1
            if response.get(b"x-request-id") is None:
                raise Disagreement(f"an answer from nowhere: {response}")
            continue
        if number >= len(meant):
            raise Disagreement(f"forwarded, and no request to h11 ({problem}): {arrived[mark].raw!r}")
        check_same_request(meant[number], arrived.pop(mark))
    if arrived:
        raise Disagreement(f"reached the origin, and no answer came: {arrived}")
    _check_unfinished(link, sent, unfinished, meant, len(responses), problem)
    return Tally(len(responses) - refused, refused)


def _check_unfinished(
    link: Link, sent: bytes, unfinished: list[Request], meant: list[Request], answered: int, problem: str
) -> None:
    """At most one request can have stopped on its way: the last one, because its rest is missing or broken."""
    if not unfinished:
        return
    if len(unfinished) > 1:
        raise Disagreement(f"several requests stopped half-way: {unfinished}")
    stopped = unfinished[0]
    was_refused = link.client.is_closing() or link.client.wrote_eof
    index = answered - 1 if was_refused else answered
    if index >= len(meant):
        raise Disagreement(f"forwarded in part, and no request to h11 ({problem}): {stopped.raw!r}")
    check_same_request(meant[index], stopped)
    if meant[index].is_complete and not was_refused:
        raise Disagreement(f"the rest of a complete request was kept: {stopped.raw!r} of {sent!r}")
    if was_refused and not all(upstream.pipe.is_closing() for upstream in link.upstreams[-1:]):
        raise Disagreement("a broken request left its upstream connection open")
