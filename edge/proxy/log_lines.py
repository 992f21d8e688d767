"""The access log's lines: one JSON object each, or nginx's combined format.

A line never carries a query, a body, or a field but the client's User-Agent: they hold secrets. JSON is joined from
text where nothing needs escaping: an encoder costs three times as much, and formatting bytes twice as much.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import orjson

from common.names import WILDCARD
from edge.http.error_responses import CLIENT_DISCONNECTED, CUT_OFF, ErrorResponse

if TYPE_CHECKING:  # the supervisor comes here too, only to look at the log's destination
    from edge.http.forwarded import Client
    from edge.http.request import FieldFacts, RequestHead
    from edge.proxy.exchange import Exchange
    from edge.routing.route import Route

_MAX_PATH: Final = 1024
_MAX_TEXT: Final = 256
_USUAL_USER_AGENT: Final = b"\r\nUser-Agent: "
_USER_AGENT: Final = re.compile(rb"\r\nuser-agent:[ \t]*+([^\r\n]*)", re.IGNORECASE)
# What stands as it is in both formats maps to itself; all else to a line feed.
_PLAIN: Final = bytes(octet if 0x20 <= octet < 0x7F and octet not in b'"\\' else 0x0A for octet in range(256))
_QUOTE: Final = ord('"')
_BACKSLASH: Final = ord("\\")
_ESCAPED: Final = re.compile(rb"[^ !#-\[\]-~]")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")  # in any locale
_NOWHERE: Final = slice(0, 0)
_VERSIONS: Final = ("HTTP/1.0", "HTTP/1.1", "HTTP/2.0")
_THREE_DIGITS: Final = tuple(f"{number:03}" for number in range(1000))


class LoggedConnection:
    """What the lines of a client's connection state again and again, in the words of the one format that is written.

    `usual` was made for requests of the same `route`, and of the same `facts` where the client may state another's
    address; `agent` states the User-Agent that stands at
    `agent_at` of the forwarded fields, with the line `agent_line`.
    """

    __slots__ = (
        "agent",
        "agent_at",
        "agent_line",
        "client",
        "facts",
        "is_trusted",
        "protocol",
        "route",
        "scheme",
        "tls",
        "usual",
    )

    usual: tuple[str, ...]

    def __init__(self, client: Client, scheme: bytes, tls: str, protocol: str = "") -> None:
        """Keep what all lines state. `tls` is the version, "" without TLS; `protocol` is stated if it is not HTTP/1."""
        self.client: Final = client
        self.is_trusted: Final = client.is_trusted
        self.scheme: Final = scheme.decode()
        self.tls: Final = tls
        self.protocol: Final = protocol
        self.facts: FieldFacts | None = None
        self.route: Route | None = None
        self.agent = ""
        self.agent_at = _NOWHERE
        self.agent_line = b"\r\n"  # which stands nowhere


class LineFormat(Protocol):
    """Writes the line of one request."""

    def line(
        self,
        connection: LoggedConnection,
        at: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> bytes:
        """Return the line, with its end.

        `at` is in unix seconds; `head` is None where the request could not be read; `exchange` has ended.
        """


class JsonLines:
    """Writes one JSON object a line. `node` names this machine in each."""

    __slots__ = ("_node", "_node_member", "_second", "_start", "_states_user_agent")

    def __init__(self, node: str, *, user_agent: bool) -> None:
        self._node = node
        self._node_member = f'","node":{orjson.dumps(node).decode()},"status":'
        self._states_user_agent = user_agent
        self._second = 0  # that `_start` states
        self._start = ""

    def line(
        self,
        connection: LoggedConnection,
        at: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> bytes:
        """Return the line."""
        if (
            head is not None
            and exchange is not None
            and exchange.failure is None
            and refusal is None
            and (
                not self._states_user_agent
                or head.kept[connection.agent_at] == connection.agent_line
                or self._can_state_agent(connection, head.kept)
            )
            and (not connection.is_trusted or _is_plain(request_id.encode()))
        ):
            path = head.target.partition(b"?")[0]
            if not (_QUOTE in path or _BACKSLASH in path or len(path) > _MAX_PATH):  # else all of a target is plain
                if connection.route is not exchange.route or (
                    connection.is_trusted and connection.facts is not head.fields
                ):
                    self._learn(connection, head.fields, exchange.route)
                scheme, client, domain, application = connection.usual
                second = int(at)
                if second != self._second:
                    self._second, self._start = second, f'{{"time":"{_iso_second(second)}.'
                method = "GET" if head.method == b"GET" else head.method.decode()
                started_at = exchange.started_at
                seconds = origin_seconds = f"{exchange.ended_at - started_at:.6f}"
                if exchange.answered_at:
                    origin_seconds = f"{exchange.answered_at - started_at:.6f}"
                return (
                    f'{self._start}{_THREE_DIGITS[int((at - second) * 1000)]}+00:00","id":"{request_id}'
                    f"{self._node_member}{status}{scheme}{bytes_down}{client}{method}{domain}{path.decode()}"
                    f'{connection.agent}{application}{seconds},"bytes_up":{exchange.bytes_up},"reused":'
                    f'{"true" if exchange.reused else "false"},"origin_seconds":{origin_seconds}}}\n'
                ).encode()
        entry = self._entry(connection, at, status, request_id, head, bytes_down)
        if exchange is not None:
            entry |= _of_exchange(exchange)
        if refusal is not None:
            entry["refusal"] = refusal.code
        return orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE)

    def _learn(self, connection: LoggedConnection, facts: FieldFacts, route: Route) -> None:
        """Make what lines about such requests state: a scheme, an address, a domain and an id need no escaping."""
        connection.facts = facts
        connection.route = None if route.domain.startswith(WILDCARD) else route  # whose requests have other hosts each
        tls = f',"tls":"{connection.tls}"' if connection.tls else ""
        if connection.protocol:
            tls += f',"protocol":"{connection.protocol}"'
        connection.usual = (
            f',"scheme":"{connection.scheme}","bytes_down":',
            f'{tls},"client":"{connection.client.origin(facts.forwarded_for)}","method":"',
            f'","domain":"{facts.host}","path":"',
            f'","application":"{route.application_id}","seconds":',
        )

    def _can_state_agent(self, connection: LoggedConnection, kept: bytes) -> bool:
        """Have the connection's `agent` state the request's; False where that needs escaping."""
        agent = _user_agent(kept)
        if agent is not None and not _is_plain(agent):
            return False
        connection.agent = "" if agent is None else f'","user_agent":"{agent.decode()}'
        _remember_agent(connection, kept, agent)
        return True

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
            "time": f"{_iso_second(milliseconds // 1000)}.{_THREE_DIGITS[milliseconds % 1000]}+00:00",
            "id": request_id,
            "node": self._node,
            "status": status,
            "scheme": connection.scheme,
            "bytes_down": bytes_down,
        }
        if connection.tls:
            entry["tls"] = connection.tls
        if connection.protocol:
            entry["protocol"] = connection.protocol
        if head is None:
            return entry | {"client": connection.client.address}
        entry["client"] = connection.client.origin(head.fields.forwarded_for)
        entry["method"] = head.method.decode("ascii")
        entry["domain"] = head.fields.host
        entry["path"] = head.path[:_MAX_PATH].decode("ascii")
        if self._states_user_agent and (user_agent := _user_agent(head.kept)) is not None:
            entry["user_agent"] = user_agent.decode("utf-8", "replace")
        return entry


def _of_exchange(exchange: Exchange) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "application": exchange.route.application_id,
        "seconds": round(exchange.ended_at - exchange.started_at, 6),
        "bytes_up": exchange.bytes_up,
        "reused": exchange.reused,
    }
    if exchange.failure is None or exchange.answered_at:
        entry["origin_seconds"] = round((exchange.answered_at or exchange.ended_at) - exchange.started_at, 6)
    if exchange.failure is CUT_OFF or exchange.failure is CLIENT_DISCONNECTED:
        entry["cut"] = True
    if exchange.failure is CLIENT_DISCONNECTED:
        entry["client_disconnected"] = True
    if exchange.reason:
        entry["reason"] = exchange.reason[:_MAX_TEXT]
    return entry


class CombinedLines:
    """Writes nginx's combined format, without query and referrer; the size is that of the head and the body."""

    __slots__ = ("_states_user_agent",)

    def __init__(self, _node: str, *, user_agent: bool) -> None:
        self._states_user_agent = user_agent

    def line(
        self,
        connection: LoggedConnection,
        at: float,
        status: int,
        request_id: str,
        head: RequestHead | None,
        bytes_down: int,
        exchange: Exchange | None,
        refusal: ErrorResponse | None,
    ) -> bytes:
        """Return the line."""
        address, request, user_agent = connection.client.address, "-", "-"
        if head is not None:
            address = connection.client.origin(head.fields.forwarded_for)
            request = f"{head.method.decode()} {_escaped(head.path[:_MAX_PATH])} {_VERSIONS[head.minor]}"
            if self._states_user_agent:
                user_agent = _combined_agent(connection, head.kept)
        return (
            f'{address} - - [{_common_second(int(at))}] "{request}" {status} {bytes_down} "-" "{user_agent}"\n'
        ).encode()


def _combined_agent(connection: LoggedConnection, kept: bytes) -> str:
    if kept[connection.agent_at] != connection.agent_line:
        agent = _user_agent(kept)
        connection.agent = _escaped(agent) if agent else "-"
        _remember_agent(connection, kept, agent)
    return connection.agent


def _remember_agent(connection: LoggedConnection, kept: bytes, agent: bytes | None) -> None:
    """Note where the forwarded fields state the User-Agent.

    A client's requests state the same at the same place: looking at one place costs a third of a search.
    """
    line = b"" if agent is None else _USUAL_USER_AGENT + agent + b"\r\n"
    at = kept.find(line) if line else -1
    connection.agent_at = _NOWHERE if at < 0 else slice(at, at + len(line))
    connection.agent_line = line or b"\r\n"


FORMATS: Final[Mapping[str, Callable[..., LineFormat]]] = {"json": JsonLines, "combined": CombinedLines}


def _user_agent(kept: bytes) -> bytes | None:
    """Return the value of User-Agent. Nearly all state it in one spelling, which is found without a pattern."""
    _, usual, behind = kept.partition(_USUAL_USER_AGENT)
    if usual:
        return behind.partition(b"\r\n")[0][:_MAX_TEXT]
    found = _USER_AGENT.search(kept)
    return None if found is None else found[1][:_MAX_TEXT]


def _is_plain(text: bytes) -> bool:
    """Return whether the text stands as it is in both formats."""
    return text.translate(_PLAIN) == text


def _escaped(text: bytes) -> str:
    """Return the text as nginx writes it between quotation marks."""
    if not _is_plain(text):
        text = _ESCAPED.sub(lambda octet: b"\\x%02X" % ord(octet[0]), text)
    return text.decode()


def _iso_second(unix_seconds: int) -> str:
    return datetime.fromtimestamp(unix_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


@lru_cache(maxsize=2)  # made for each request, it would be a tenth of what a logged request costs
def _common_second(unix_seconds: int) -> str:
    at = datetime.fromtimestamp(unix_seconds, UTC)
    return f"{at.day:02}/{_MONTHS[at.month - 1]}/{at:%Y:%H:%M:%S} +0000"
