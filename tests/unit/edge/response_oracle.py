"""The judge of responses: what an origin sent and what the client got must mean the same, as h11 reads both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import h11

from tests.unit.edge.link import Link
from tests.unit.edge.oracle import (
    CONNECTION_WORDS,
    H11_IS_STRICTER,
    MAX_BYTES,
    Disagreement,
    Fields,
    Request,
    Response,
    Tally,
    read_requests,
    read_responses,
    tokens_in,
)

_HOP_IN_RESPONSES = frozenset(
    b"connection keep-alive proxy-connection te trailer transfer-encoding upgrade proxy-authenticate"
    b" proxy-authentication-info content-length".split()
)
NUMBER = b"x-number"  # on every scripted answer: which request it was written for


class Script(NamedTuple):
    """The bytes that an origin sends for one request.

    `ending`: nothing more, None for an orderly end, or an error for a reset."""

    pieces: Sequence[bytes]
    ending: type[BaseException] | bool | None = False
    is_early: bool = False  # sent before the request's body was read
    is_plain: bool = False  # valid in everybody's eyes: it must be delivered


class ScriptedOrigin:
    """One connection to an origin that follows scripts, by the number each request's target carries."""

    def __init__(self, scripts: dict[bytes, Script]) -> None:
        self.asked: list[tuple[bytes, bytes]] = []  # targets and methods
        self.said = b""
        self.ending: type[BaseException] | bool | None = False
        self._scripts = scripts
        self._h11 = h11.Connection(h11.SERVER, MAX_BYTES)

    def receive(self, data: bytes) -> list[bytes | type[BaseException] | None]:
        answers: list[bytes | type[BaseException] | None] = []
        try:
            self._h11.receive_data(data)
            while (event := self._h11.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                if isinstance(event, h11.Request):
                    self.asked.append((event.target, event.method))
                if isinstance(event, h11.Request | h11.EndOfMessage):
                    script = self._scripts[self.asked[-1][0]]
                    if script.is_early is isinstance(event, h11.Request):
                        answers += self._follow(script)
                if isinstance(event, h11.EndOfMessage):
                    self._h11.send(h11.Response(status_code=200, headers=[(b"Content-Length", b"0")]))
                    self._h11.send(h11.EndOfMessage())
                    self._h11.start_next_cycle()
        except (h11.ProtocolError, KeyError):
            pass  # a tunnel's bytes
        return answers

    def _follow(self, script: Script) -> list[bytes | type[BaseException] | None]:
        target = self.asked[-1][0]
        if self.ending is not False:
            return []
        self._scripts[target] = Script([PLAIN % (NUMBER, target)], is_plain=True)  # should it be asked again
        self.said += b"".join(script.pieces)
        self.ending = script.ending
        if isinstance(script.ending, bool):
            return list(script.pieces)
        return [*script.pieces, script.ending]


PLAIN = b"HTTP/1.1 200 OK\r\n%b: %b\r\nContent-Length: 2\r\n\r\nok"


def judge_responses(
    link: Link,
    requests: Sequence[bytes],
    scripts: Sequence[Script],
    *,
    client_capacity: int = 1 << 30,
    upstream_capacity: int = 1 << 30,
) -> Tally:
    """Send `requests` (number n asks for ``/n``), answer them by `scripts`, and compare what arrived.

    Raises: `Disagreement`.
    """
    origins: list[ScriptedOrigin] = []
    by_target = {b"/%d" % number: script for number, script in enumerate(scripts)}

    def machine() -> ScriptedOrigin:
        origins.append(ScriptedOrigin(by_target))
        return origins[-1]

    link.begin(machine, client_capacity=client_capacity, upstream_capacity=upstream_capacity)
    try:
        came = link.converse(list(requests))
        return _compare_responses(link, b"".join(requests), came, origins, scripts)
    finally:
        link.end()


def _compare_responses(
    link: Link, sent: bytes, came: bytes, origins: list[ScriptedOrigin], scripts: Sequence[Script]
) -> Tally:
    asked = read_requests(sent).requests
    said = _said(origins)
    if any(H11_IS_STRICTER.search(origin.said) for origin in origins):
        return Tally(0, 0)
    ended = link.client.is_closing() and not link.client.is_reset
    arrived, beyond, problem = read_responses(came, [request.method for request in asked], ended=ended)
    delivered = refused = 0
    for number, response in enumerate(arrived):
        if response.get(b"x-request-id") is not None and response.status >= 500:
            refused += 1
            if scripts[number].is_plain and (b"/%d" % number, True) in _heard(origins):
                raise Disagreement(f"a plain answer was refused: {scripts[number]}")
            continue
        delivered += 1
        meant, rest = said.get(b"/%d" % number, (None, b""))
        if meant is None:
            raise Disagreement(f"h11 finds no answer in what the origins said: {scripts[number]}, arrived {response}")
        check_same_response(asked[number], meant, response)
        if response.status == 101 and not rest.startswith(beyond):
            raise Disagreement(f"a tunnel changed bytes: {rest!r}, arrived {beyond!r}")
        if response.status == 101:
            return Tally(delivered, refused)
    whole = sum(response.is_complete for response in arrived)
    is_over = link.client.is_closing() or link.client.wrote_eof
    if not is_over and whole < len(asked) and all(script.is_plain for script in scripts):
        raise Disagreement(f"no whole answer, and the connection stays: {scripts[whole]}, came {came!r}")
    if beyond or (problem and not link.client.is_closing()):
        raise Disagreement(f"the client cannot read {came!r} ({problem}, {beyond!r} left)")
    return Tally(delivered, refused)


def _heard(origins: list[ScriptedOrigin]) -> set[tuple[bytes, bool]]:
    """Which targets were asked for on a connection whose earlier answers were in order."""
    return {(target, True) for origin in origins for target, _ in origin.asked[:1]}


def _said(origins: list[ScriptedOrigin]) -> dict[bytes, tuple[Response, bytes]]:
    """What h11 understands from each origin's connection, by the target asked for; and what follows it there."""
    said: dict[bytes, tuple[Response, bytes]] = {}
    for origin in origins:
        methods = [method for _, method in origin.asked]
        responses, rest, _ = read_responses(origin.said, methods, ended=origin.ending is None)
        for (target, _), response in zip(origin.asked, responses, strict=False):
            said[target] = (response, rest)
    return said


def check_same_response(request: Request, said: Response, arrived: Response) -> None:
    takes_trailers = request.minor == 1 and b"trailers" in tokens_in(request.fields, b"te")
    expected = {
        "status": said.status,
        "fields": _onward(said.fields),
        "interim": tuple((status, _onward(fields)) for status, fields in said.interim) if request.minor else (),
        "trailers": (_allowed(said.trailers) if takes_trailers else ()) if arrived.is_complete else (),
    }
    seen = {
        "status": arrived.status,
        "fields": _onward(arrived.fields if said.get(b"date") is not None else _without_our_date(arrived)),
        "interim": tuple((status, _onward(fields)) for status, fields in arrived.interim),
        "trailers": arrived.trailers,
    }
    if expected != seen:
        raise Disagreement(f"said {expected}, arrived {seen}")
    if arrived.is_complete and not said.is_complete:
        raise Disagreement(f"an incomplete answer passed as complete: {said}, arrived {arrived}")
    if arrived.body != said.body if arrived.is_complete else not said.body.startswith(arrived.body):
        raise Disagreement(f"said {said.body!r}, arrived {arrived.body!r}")
    lengths = {int(length.split(b",")[0]) for each in (said, arrived) if (length := each.get(b"content-length"))}
    if request.method == b"HEAD" and len(lengths) > 1:
        raise Disagreement(f"another length: {said}, arrived {arrived}")


def _without_our_date(arrived: Response) -> Fields:
    """RFC 9110 §6.6.1: where the origin stated none, we have to (of final answers)."""
    if arrived.status != 101 and arrived.get(b"date") is None:
        raise Disagreement(f"no date: {arrived}")
    return tuple((name, value) for name, value in arrived.fields if name != b"date")


def _onward(fields: Fields) -> Fields:
    gone = _HOP_IN_RESPONSES | (tokens_in(fields, b"connection") - CONNECTION_WORDS - {b"te"})
    return tuple((name, value) for name, value in fields if name not in gone)


_NO_TRAILERS = frozenset(
    b"age authorization cache-control connection content-encoding content-length content-range content-type cookie"
    b" date expect expires host keep-alive location max-forwards proxy-authenticate proxy-authorization"
    b" proxy-connection retry-after set-cookie te trailer transfer-encoding upgrade vary via www-authenticate".split()
)


def _allowed(trailers: Fields) -> Fields:
    return tuple((name, value) for name, value in trailers if name not in _NO_TRAILERS)
