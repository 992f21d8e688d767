"""Routes, built from the replica's records and remembered while they stay the same.

A worker's generation moves with each commit to the replica. A remembered route of an older generation is read again
(3 µs) and kept, the very object, when its records are the same bytes; unknown names are never remembered.
"""

from __future__ import annotations

import base64
from typing import Any, Literal, NamedTuple, Protocol

import orjson
from common.urls import parse_application_url

from common.errors import SecretUnreadable
from common.logs import get_logger
from common.secrets import Keyring
from edge.routing.route import Origin, Route

_MAX_REMEMBERED = 65_536

_log = get_logger("edge.replica.routes")


class Reader(Protocol):
    """What is asked of `edge.replica.reader.ReplicaReader`."""

    def get_raw(self, kind: str, key: str) -> bytes | None: ...


class _Remembered(NamedTuple):
    generation: int
    records: tuple[bytes, bytes]
    route: Route


class RouteTable:
    """One a worker, asked by every request; `generation` is set by whoever learns of a commit."""

    def __init__(self, reader: Reader, keyring: Keyring) -> None:
        self._reader = reader
        self._keyring = keyring
        self._routes: dict[str, _Remembered] = {}
        self.generation = 0

    def find(self, domain: str) -> Route | None:
        """The route of a normalised host name; Power's wins over Secure's."""
        known = self._routes.get(domain)
        if known is not None and known.generation == self.generation:
            return known.route
        records = self._read(domain, "power") or self._read(domain, "secure")
        if records is None:
            self._routes.pop(domain, None)
            return None
        route = known.route if known is not None and known.records == records else self._build(*records)
        if known is None and len(self._routes) >= _MAX_REMEMBERED:
            self._routes.pop(next(iter(self._routes)))
        self._routes[domain] = _Remembered(self.generation, records, route)
        return route

    def _read(self, domain: str, product: str) -> tuple[bytes, bytes] | None:
        route = self._reader.get_raw("route", f"{product}/{domain}")
        if route is None:
            return None
        application = self._reader.get_raw("application", orjson.loads(route)["application_id"])
        return None if application is None else (route, application)

    def _build(self, route_record: bytes, application_record: bytes) -> Route:
        record: dict[str, Any] = orjson.loads(route_record)
        application: dict[str, Any] = orjson.loads(application_record)
        product: Literal["power", "secure"] = record["product"]
        url = parse_application_url(record["application_url"] or application["application_url"])
        own_root_paths = record["root_path_access"]
        root_paths = application["root_path_access"] if own_root_paths is None else own_root_paths
        return Route(
            domain=record["domain"],
            product=product,
            application_id=record["application_id"],
            origin=Origin(url.scheme, url.host, url.port, server_name=url.host),
            base_path=url.path.encode() if product == "power" else b"",
            root_paths=tuple("/".join(["", *filter(None, path.split("/"))]).encode() for path in root_paths),
            service_auth=self._open_service_auth(application),
        )

    def _open_service_auth(self, application: dict[str, Any]) -> bytes:
        if application["service_auth"] is None:
            return b""
        try:
            envelope = base64.b64decode(application["service_auth"])
            return self._keyring.open(envelope, f"application/{application['id']}/service-auth")
        except SecretUnreadable:
            # The origin will refuse what lacks its token: better than not serving at all.
            _log.error("service auth token unreadable", application=application["id"])
            return b""
