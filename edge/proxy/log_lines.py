"""The access log's lines: one JSON object each, or nginx's combined format. Pure.

A line never carries a query, a body, or a field but the client's User-Agent: they hold secrets. JSON is made by a
template of bytes where nothing needs escaping: an encoder costs three times as much.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from edge.http.error_responses import CLIENT_DISCONNECTED, CUT_OFF, ErrorResponse

if TYPE_CHECKING:  # the supervisor comes here too, only to look at the log's destination
    from edge.http.forwarded import Client
    from edge.http.request import RequestHead
    from edge.proxy.exchange import Exchange

_MAX_PATH: Final = 1024
_MAX_TEXT: Final = 256
_USUAL_USER_AGENT: Final = b"\r\nUser-Agent: "
_USER_AGENT: Final = re.compile(rb"\r\nuser-agent:[ \t]*+([^\r\n]*)", re.IGNORECASE)
# What stands as it is in both formats maps to itself; all else to a line feed.
_PLAIN: Final = bytes(octet if 0x20 <= octet < 0x7F and octet not in b'"\\' else 0x0A for octet in range(256))
_ESCAPED: Final = re.compile(rb"[^ !#-\[\]-~]")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # in any locale


@dataclass(slots=True)
class LoggedConnection:
    """What all lines of a client's connection state."""

    client: Final[Client]
    scheme: Final[bytes]
    tls: Final[str]  # the version, "" without TLS
    tls_member: bytes = field(init=False)  # the same, of a JSON object

    def __post_init__(self) -> None:
        self.tls_member = b',"tls":"%b"' % self.tls.encode() if self.tls else b""


class LineFormat(Protocol):
    """Writes the line of one request."""

    def line(
        self,
        connection: LoggedConnection,
        at: float,
        now: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> bytes:
        """Return the line, with its end. `at` is in unix seconds and `now` monotonic; `head` is None where the request
        could not be read."""


class JsonLines:
    """One JSON object a line. `node` names this machine in each."""

    __slots__ = ("_node", "_states_user_agent", "_usual")

    def __init__(self, node: str, *, user_agent: bool) -> None:
        self._node = node
        self._states_user_agent = user_agent
        self._usual = (
            b'{"time":"%%b.%%03d+00:00","id":"%%b","node":%b,"status":%%d,"scheme":"%%b","bytes_down":%%d%%b'
            b',"client":"%%b","method":"%%b","domain":"%%b","path":"%%b"%%b,"application":"%%b","seconds":%%.6f'
            b',"bytes_up":%%d,"reused":%%b,"origin_seconds":%%.6f}\n'
        ) % orjson.dumps(node).replace(b"%", b"%%")

    def line(
        self,
        connection: LoggedConnection,
        at: float,
        now: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> bytes:
        if head is not None and exchange is not None and exchange.failure is None and refusal is None:
            path = head.target.partition(b"?")[0][:_MAX_PATH]
            user_agent = _user_agent(head.kept) if self._states_user_agent else None
            values = request_id.encode() + path + (user_agent or b"")
            if values.translate(_PLAIN) == values:  # nearly always: all else is plain in any case
                milliseconds, started_at = int(at * 1000), exchange.started_at
                return self._usual % (
                    _iso_second(milliseconds // 1000),
                    milliseconds % 1000,
                    request_id.encode(),
                    status,
                    connection.scheme,
                    bytes_down,
                    connection.tls_member,
                    connection.client.origin(head.fields.forwarded_for).encode(),
                    head.method,
                    head.fields.host.encode(),
                    path,
                    b',"user_agent":"%b"' % user_agent if user_agent is not None else b"",
                    exchange.route.application_id.encode(),
                    now - started_at,
                    exchange.bytes_up,
                    b"true" if exchange.reused else b"false",
                    (exchange.answered_at or now) - started_at,
                )
        entry = self._entry(connection, at, status, request_id, head, bytes_down)
        if exchange is not None:
            entry |= _of_exchange(exchange, now)
        if refusal is not None:
            entry["refusal"] = refusal.code
        return orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)

    def _entry(
        self,
        connection: LoggedConnection,
        at: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
    ) -> dict[str, Any]:
        milliseconds = int(at * 1000)
        entry: dict[str, Any] = {
            "time": f"{_iso_second(milliseconds // 1000).decode()}.{milliseconds % 1000:03}+00:00",
            "id": request_id,
            "node": self._node,
            "status": status,
            "scheme": connection.scheme.decode(),
            "bytes_down": bytes_down,
        }
        if connection.tls:
            entry["tls"] = connection.tls
        if head is None:
            return entry | {"client": connection.client.address}
        entry["client"] = connection.client.origin(head.fields.forwarded_for)
        entry["method"] = head.method.decode("ascii")
        entry["domain"] = head.fields.host
        entry["path"] = head.path[:_MAX_PATH].decode("ascii")
        if self._states_user_agent and (user_agent := _user_agent(head.kept)) is not None:
            entry["user_agent"] = user_agent.decode("utf-8", "replace")
        return entry


def _of_exchange(exchange: Exchange, now: float) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "application": exchange.route.application_id,
        "seconds": round(now - exchange.started_at, 6),
        "bytes_up": exchange.bytes_up,
        "reused": exchange.reused,
    }
    if exchange.failure is None or exchange.answered_at:
        entry["origin_seconds"] = round((exchange.answered_at or now) - exchange.started_at, 6)
    if exchange.failure is CUT_OFF or exchange.failure is CLIENT_DISCONNECTED:
        entry["cut"] = True
    if exchange.failure is CLIENT_DISCONNECTED:
        entry["client_disconnected"] = True
    if exchange.reason:
        entry["reason"] = exchange.reason[:_MAX_TEXT]
    return entry


class CombinedLines:
    """nginx's combined format, without query and referrer; the size is that of the head and the body."""

    __slots__ = ("_states_user_agent",)

    def __init__(self, _node: str, *, user_agent: bool) -> None:
        self._states_user_agent = user_agent

    def line(
        self,
        connection: LoggedConnection,
        at: float,
        now: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> bytes:
        address, request, user_agent = connection.client.address, b"-", None
        if head is not None:
            address = connection.client.origin(head.fields.forwarded_for)
            request = b"%b %b HTTP/1.%d" % (head.method, head.path[:_MAX_PATH], head.minor)
            user_agent = _user_agent(head.kept) if self._states_user_agent else None
        return b'%b - - [%b] "%b" %d %d "-" "%b"\n' % (
            _escaped(address.encode()),
            _common_second(int(at)),
            _escaped(request),
            status,
            bytes_down,
            _escaped(user_agent) if user_agent else b"-",
        )


FORMATS: Final[Mapping[str, Callable[..., LineFormat]]] = {"json": JsonLines, "combined": CombinedLines}


def _user_agent(kept: bytes) -> bytes | None:
    """Return the value of User-Agent. Nearly all state it in one spelling, which is found without a pattern."""
    _, usual, behind = kept.partition(_USUAL_USER_AGENT)
    if usual:
        return behind.partition(b"\r\n")[0][:_MAX_TEXT]
    found = _USER_AGENT.search(kept)
    return None if found is None else found[1][:_MAX_TEXT]


def _escaped(text: bytes) -> bytes:
    """Return the text as nginx writes it between quotation marks."""
    if text.translate(_PLAIN) == text:
        return text
    return _ESCAPED.sub(lambda octet: b"\\x%02X" % ord(octet[0]), text)


# Made for each request, a time of day would be a tenth of what a logged request costs.


@lru_cache(maxsize=2)
def _iso_second(unix_seconds: int) -> bytes:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()


@lru_cache(maxsize=2)
def _common_second(unix_seconds: int) -> bytes:
    at = datetime.fromtimestamp(unix_seconds, UTC)
    return f"{at.day:02}/{_MONTHS[at.month - 1]}/{at:%Y:%H:%M:%S} +0000".encode()
