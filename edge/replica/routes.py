"""Builds routes from the replica's records, and remembers them while they stay the same.

A worker's generation moves with each commit to the replica. A remembered route of an older generation is read again (3
µs) and kept, the very object, when its records are the same bytes; unknown names are never remembered. A name that
only a wildcard stands for has the wildcard's route, and is remembered until the generation moves. A record that
cannot be served by makes a route that refuses, for its own domain and no other; it is remembered like any other, so
that it is logged once.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from common.errors import InvalidName
from common.logs import get_logger
from common.metadata import KEY, field_name, field_value
from common.names import WILDCARD, parse_host_name, wildcard_above
from common.secrets import Keyring
from common.urls import InvalidUrl, parse_application_url, parse_redirect_target
from common.visitors import InvalidNetwork, NetworkSet, parse_network
from edge.http.error_responses import MAINTENANCE, MISCONFIGURED, ErrorResponse, blocked
from edge.replica.applications import ApplicationTable, ReplicatedApplication
from edge.replica.records import (
    ApplicationRecord,
    ErrorPageRecord,
    PolicyRecord,
    RecordReader,
    RecordUnusable,
    RouteRecord,
    VisitorsRecord,
    read_record,
)
from edge.replica.response_policies import domain_policy
from edge.routing.response_policy import ResponsePolicy
from edge.routing.route import Origin, Product, RedirectTo, Route
from edge.routing.visitors import VisitorRules

_MAX_REMEMBERED = 32_768  # some 550 bytes each
_PRODUCTS: tuple[Product, ...] = ("power", "secure")  # Power's route wins
_NOWHERE = Origin("http", "", 0, "")

_log = get_logger("edge.replica.routes")


class TlsOptions(NamedTuple):
    """What the TLS of a domain depends on, beside its certificate."""

    application_id: str | None
    offers_http2: bool = True
    needs_tls13: bool = False


def read_tls_options(reader: RecordReader, domain: str) -> TlsOptions:
    """Return the options of the application that has the domain in the replica now.

    There is no application where the route's record is missing or unusable; an unusable application has the defaults.
    A domain's own minimum version of TLS holds before its application's.
    """
    for product in _PRODUCTS:
        content = reader.get_raw("route", f"{product}/{domain}")
        if content is not None:
            with suppress(RecordUnusable):
                record = read_record(RouteRecord, content)
                application = _find_application(reader, record.application_id)
                return TlsOptions(record.application_id, application.http2, _needs_tls13(record, application))
    return TlsOptions(None)


def _needs_tls13(record: RouteRecord, application: ApplicationRecord) -> bool:
    return ((record.visitors and record.visitors.minimum_tls) or application.minimum_tls) == "1.3"


def _find_application(reader: RecordReader, application_id: str) -> ApplicationRecord:
    """Return the application, with the defaults where it is missing or unusable."""
    content = reader.get_raw("application", application_id)
    if content is not None:
        with suppress(RecordUnusable):
            return read_record(ApplicationRecord, content)
    return ApplicationRecord()


@dataclass(slots=True)
class _RememberedRoute:
    generation: int
    content: bytes
    application: ReplicatedApplication | None  # None: the route's record does not say whose it is
    policies: tuple[bytes, ...]
    route: Route


class RouteTable:
    """The routes of a worker, asked for by every request; `generation` is set after each commit."""

    def __init__(
        self,
        reader: RecordReader,
        keyring: Keyring,
        *,
        api_domain: str | None = None,
        response_policy: ResponsePolicy | None = None,
        most: int = _MAX_REMEMBERED,
    ) -> None:
        """Begin with nothing remembered.

        `api_domain`: the operator's own, which may lead to the management API; no application can enrol it.
        `response_policy`: of routes whose application has none. `most`: the routes that are remembered.
        """
        self._response_policy = response_policy
        self._most = most
        self._reader = reader
        self._api_domain = api_domain
        self._applications = ApplicationTable(reader, keyring)
        self._routes: dict[str, _RememberedRoute] = {}
        self._beneath_wildcards: dict[str, Route] = {}
        self._beneath_generation = 0
        self.generation = 0

    def find(self, domain: str) -> Route | None:
        """Return the route of a normalised host name, its own before a wildcard's; Power's wins over Secure's."""
        known = self._routes.get(domain)
        if known is not None and known.generation == self.generation:
            return known.route
        if known is None and self._beneath_generation == self.generation and domain in self._beneath_wildcards:
            return self._beneath_wildcards[domain]
        current = self._read(domain, known)
        if current is None:
            self._routes.pop(domain, None)
            return None if domain.startswith(WILDCARD) else self._find_wildcard(domain)
        if known is None and len(self._routes) >= self._most:
            self._forget_some()
        self._routes[domain] = current
        return current.route

    def _find_wildcard(self, host: str) -> Route | None:
        """Return the route of the wildcard that stands for the host; a block of the host's own holds."""
        route = self.find(wildcard_above(host))
        if route is None:
            return None
        own = self._reader.get_raw("policy", f"domain/{host}")
        if own is not None:
            route = replace(route, refusal=_answer(host, (own,)) or route.refusal)
        if self._beneath_generation != self.generation or len(self._beneath_wildcards) >= self._most:
            self._beneath_wildcards.clear()
            self._beneath_generation = self.generation
        self._beneath_wildcards[host] = route
        return route

    @property
    def lacks_secrets(self) -> bool:
        """Return whether a secret of an application does not open."""
        return self._applications.lacks_secrets

    def error_page(self, domain: str) -> str | None:
        """Return the page that the domain's application shows instead of ours.

        It is not remembered: pages are large, errors few.
        """
        route = self.find(domain)
        if route is None or not route.application_id:
            return None
        content = self._reader.get_raw("error_page", route.application_id)
        try:
            return None if content is None else read_record(ErrorPageRecord, content).html
        except RecordUnusable:
            return None  # ours will do

    def _forget_some(self) -> None:
        """Forget the routes remembered longest.

        Many at once, for a dictionary's first is hard to find once others were taken.
        """
        for domain in list(islice(self._routes, 1 + self._most // 16)):
            del self._routes[domain]

    def _read(self, domain: str, known: _RememberedRoute | None) -> _RememberedRoute | None:
        for product in _PRODUCTS:
            content = self._reader.get_raw("route", f"{product}/{domain}")
            if content is None:
                continue
            if known is not None and known.content == content and self._is_current(known):
                known.generation = self.generation
                return known
            return self._build(domain, product, content)
        return None

    def _is_current(self, known: _RememberedRoute) -> bool:
        application, route = known.application, known.route
        if known.policies != self._policies(route.domain, route.application_id):
            return False
        return application is None or self._applications.find(application.id, self.generation) is application

    def _policies(self, domain: str, application_id: str) -> tuple[bytes, ...]:
        """Return the records of the domain's policy and of its application's, as far as there are any."""
        keys = (f"domain/{domain}", f"application/{application_id}")
        return tuple(content for key in keys if (content := self._reader.get_raw("policy", key)) is not None)

    def _build(self, domain: str, product: Product, content: bytes) -> _RememberedRoute | None:
        """Return the route, None while the application is not there."""
        application = None
        application_id = ""
        try:
            record = read_record(RouteRecord, content)
            application_id = record.application_id
            application = self._applications.find(application_id, self.generation)
            if application is None:
                return None
            route = _route(domain, product, record, application)
            if domain == self._api_domain:
                route = replace(route, origin=route.origin._replace(is_own_api=True))
        except (RecordUnusable, InvalidUrl, InvalidName, InvalidNetwork) as error:
            _log.error("route unusable", domain=domain, product=product, reason=str(error))
            route = Route(domain, product, application_id, _NOWHERE, b"", (), b"", b"", refusal=MISCONFIGURED)
        if route.response_policy is None and self._response_policy is not None:
            route = replace(route, response_policy=self._response_policy)
        policies = self._policies(domain, application_id)
        if policies:
            route = replace(route, refusal=_answer(domain, policies) or route.refusal)
        return _RememberedRoute(self.generation, content, application, policies, route)


def _answer(domain: str, policies: tuple[bytes, ...]) -> ErrorResponse | None:
    """Return the answer of the first policy that has one; a policy that cannot be read lets no request through."""
    try:
        answers = [read_record(PolicyRecord, content).answer for content in policies]
    except RecordUnusable as error:
        _log.error("policy unusable", domain=domain, reason=str(error))
        return MISCONFIGURED
    return next((blocked(answer.status, answer.reason) for answer in answers if answer is not None), None)


def _route(domain: str, product: Product, record: RouteRecord, application: ReplicatedApplication) -> Route:
    """Return the route that the record describes.

    Raises: `RecordUnusable`, `InvalidUrl`, `InvalidName`.
    """
    options = application.record
    if options is None:
        raise RecordUnusable("its application is unusable")
    refusal, visitors = MAINTENANCE if options.maintenance else None, _visitors(record.visitors)
    needs_tls13 = _needs_tls13(record, options)
    if product == "secure" and record.redirect_to:
        nowhere = Route(domain, product, application.id, _NOWHERE, b"", (), b"", b"", needs_tls13=needs_tls13)
        return replace(nowhere, redirect_to=_redirect_to(record.redirect_to), refusal=refusal, visitors=visitors)
    url = record.application_url or options.application_url or ""
    origin, authority, base_path = _origin(url, options.origin_server_name, options.origin_verify)
    is_vouched = record.origin_vouched or not record.application_url
    root_paths = options.root_path_access if record.root_path_access is None else record.root_path_access
    return Route(
        domain=domain,
        product=product,
        application_id=application.id,
        origin=origin,
        base_path=base_path if product == "power" else b"",
        root_paths=tuple("/".join(["", *filter(None, path.split("/"))]).encode() for path in root_paths),
        service_auth=application.service_auth if is_vouched else b"",
        origin_host=b"" if options.send_host == "customer" else authority,
        signing=application.signing if is_vouched else None,
        refusal=refusal,
        response_policy=_response_policy(record, application),
        buffer_uploads_bytes=options.buffer_uploads_bytes or 0,
        visitors=visitors,
        needs_tls13=needs_tls13,
        metadata=_metadata(record, options.metadata_fields) if is_vouched else b"",
    )


def _response_policy(record: RouteRecord, application: ReplicatedApplication) -> ResponsePolicy | None:
    """Return what responses carry: the application's own object, for the many domains that state nothing."""
    if record.response_policy is None or application.record is None:
        return application.response_policy
    return domain_policy(application.record.response_policy, record.response_policy)


def _visitors(record: VisitorsRecord | None) -> VisitorRules | None:
    """Return the rules for visitors. Raises: `InvalidNetwork`."""
    if record is None or not (record.allow or record.deny or record.rate_limit):
        return None
    allowed, denied = (NetworkSet(map(parse_network, texts)) for texts in (record.allow, record.deny))
    rate = record.rate_limit
    return VisitorRules(allowed if record.allow else None, denied, *((rate.requests, rate.seconds) if rate else ()))


def _metadata(record: RouteRecord, keys: Sequence[str]) -> bytes:
    """Return the fields that tell the origin what the application notes of the domain under these keys."""
    noted = ((key, record.metadata[key]) for key in keys if key in record.metadata and KEY.fullmatch(key))
    return "".join(f"\r\n{field_name(key)}: {field_value(text)}" for key, text in noted).encode("ascii")


@lru_cache(maxsize=1024)
def _origin(application_url: str, server_name: str | None, verify: bool) -> tuple[Origin, bytes, bytes]:
    """Return the origin, its authority and its path, if it has one.

    They are the very same for the many domains of one application.

    Raises: `InvalidUrl`, `InvalidName`.
    """
    url = parse_application_url(application_url)
    origin = Origin(url.scheme, url.host, url.port, parse_host_name(server_name) if server_name else url.host, verify)
    return origin, origin.authority, b"" if url.path == "/" else url.path.encode()


def _redirect_to(text: str) -> RedirectTo:
    """Return the address that `text` states.

    Raises: `InvalidUrl`.
    """
    url = parse_redirect_target(text)
    return RedirectTo(url.host, f"{url.scheme}://{url.authority}".encode(), url.path.encode())
