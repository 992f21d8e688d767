"""A DNS provider with Domain Connect (draft-ietf-dconn-domainconnect): settings, template query, and a consent page.

It applies templates as the draft states: it verifies the signature against the public key in the DNS, fills in the
variables, removes what conflicts, and writes into a zone. It shares no code with the product's side of the protocol.
In a test, `faults` sets what it does wrong; ``PUT /faults`` (a JSON list of names) does the same from outside.
``PUT /templates`` (a JSON list) onboards templates.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import html
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from string import Template
from typing import Any, Final, Protocol, Self
from urllib.parse import parse_qsl, quote, unquote, urlencode

import dns.asyncquery
import dns.message
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.update
from aiohttp import web
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import load_der_public_key

from bench.lab.serving import serving
from bench.lab.zone import Zone
from common.errors import OperatorError
from common.host_ports import HostPort

_ASK_SECONDS = 5.0
_TYPES: Final = ("A", "AAAA", "CNAME", "MX", "TXT", "SRV", "CAA", "NS")
_SLOW_SECONDS = 60.0
NAME: Final = "Lab Domains"
PROVIDER_ID: Final = "lab-domains.example"
WIDTH, HEIGHT = 620, 700


class ProviderFault(StrEnum):
    """What the provider does wrong."""

    REFUSE_TEMPLATE = "refuse_template"  # the template query answers 404
    SLOW_SETTINGS = "slow_settings"  # longer than anybody waits
    BAD_STATE = "bad_state"  # the person returns with another state
    LIE = "lie"  # success is reported, and nothing is written
    FAIL = "fail"  # server_error is reported, and nothing is written
    FAIL_AFTERWARDS = "fail_afterwards"  # written, and server_error is reported


@dataclass(frozen=True, slots=True)
class ZoneRow:
    """One record; `name` is absolute, without the final dot, `value` as in a zone file."""

    name: str
    type: str
    value: str
    ttl: int


class HostedZone(Protocol):
    """The zone that the provider hosts."""

    async def values(self, name: str, kind: str) -> list[str]:
        """Return the values of the name's records of this type."""

    async def write(self, gone: Sequence[tuple[str, str, str]], rows: Sequence[ZoneRow]) -> None:
        """Remove records, then add others."""
        ...


class ZoneStore:
    """The lab's own zone, as the provider hosts it."""

    def __init__(self, zone: Zone) -> None:
        self._zone = zone

    async def values(self, name: str, kind: str) -> list[str]:
        """Return the values of the name's records of this type."""
        return [value for owner, of_type, value in self._zone.listed() if (owner, of_type) == (name, kind)]

    async def write(self, gone: Sequence[tuple[str, str, str]], rows: Sequence[ZoneRow]) -> None:
        """Remove records, then add others."""
        for name, kind, value in gone:
            self._zone.remove(name, kind, value)
        for row in rows:
            self._zone.add(row.name, row.type, row.value, ttl_seconds=row.ttl)


class UpdateStore:
    """A zone `apex` of an authoritative server, such as knot, written by RFC 2136."""

    def __init__(self, server: HostPort, apex: str) -> None:
        self._server = server
        self._apex = apex

    async def values(self, name: str, kind: str) -> list[str]:
        """Return the values of the name's records of this type."""
        return await _ask(self._server, name, kind)

    async def write(self, gone: Sequence[tuple[str, str, str]], rows: Sequence[ZoneRow]) -> None:
        """Remove records, then add others."""
        update = dns.update.UpdateMessage(self._apex)
        for name, kind, value in gone:
            update.delete(f"{name}.", kind, value)
        for row in rows:
            update.add(f"{row.name}.", row.ttl, row.type, row.value)
        reply = await dns.asyncquery.tcp(update, self._server.host, port=self._server.port, timeout=_ASK_SECONDS)
        if reply.rcode() != dns.rcode.NOERROR:
            raise OperatorError(f"the zone was not written: {dns.rcode.to_text(reply.rcode())}")


class DomainConnectProvider:
    """A Domain Connect provider. Created and closed by `serve`.

    `authority` is the text of the ``_domainconnect`` records that lead here; `faults` what it does wrong; `applied`
    counts the templates that it has written.
    """

    def __init__(
        self, apex: str, store: HostedZone, resolver: HostPort, templates: Sequence[Mapping[str, Any]]
    ) -> None:
        self.authority = ""
        self.faults: frozenset[ProviderFault] = frozenset()
        self.applied = 0
        self.name_servers: list[str] = []
        self._apex = apex
        self._store = store
        self._resolver = resolver
        self._templates = {(each["providerId"], each["serviceId"]): each for each in templates}
        self._page = Template((resources.files("bench.lab") / "consent.html").read_text("utf-8"))

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls,
        apex: str,
        store: HostedZone,
        resolver: HostPort,
        templates: Sequence[Mapping[str, Any]],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> AsyncIterator[Self]:
        """Serve the zone `apex` within the block.

        `resolver` answers for the public keys; `templates`: those that it has accepted.
        """
        provider = cls(apex, store, resolver, templates)
        service = "/v2/domainTemplates/providers/{provider}/services/{service}"
        app = web.Application()
        app.router.add_put("/faults", provider._set_faults)
        app.router.add_put("/templates", provider._accept)
        app.router.add_get("/v2/{domain}/settings", provider._settings)
        app.router.add_get(service, provider._supports)
        app.router.add_get(f"{service}/apply", provider._ask)
        app.router.add_post(f"{service}/apply", provider._decide)
        async with serving(app, host, port) as address:
            provider.authority = address
            yield provider

    def accept(self, templates: Sequence[Mapping[str, Any]]) -> None:
        """Onboard templates; one of the same ids is replaced."""
        self._templates |= {(each["providerId"], each["serviceId"]): each for each in templates}

    async def _accept(self, request: web.Request) -> web.Response:
        self.accept(await request.json())
        return web.Response(status=204)

    async def _set_faults(self, request: web.Request) -> web.Response:
        self.faults = frozenset(map(ProviderFault, await request.json()))
        return web.Response(status=204)

    async def _settings(self, request: web.Request) -> web.Response:
        if ProviderFault.SLOW_SETTINGS in self.faults:
            await asyncio.sleep(_SLOW_SECONDS)
        if request.match_info["domain"] != self._apex:
            raise web.HTTPNotFound
        url = f"http://{self.authority}"
        return web.json_response(
            {
                "providerId": PROVIDER_ID,
                "providerName": NAME,
                "urlSyncUX": url,
                "urlAPI": url,
                "width": WIDTH,
                "height": HEIGHT,
                "urlControlPanel": f"{url}/zones/%domain%",
                "nameServers": self.name_servers,
                "x-brand": {"colour": "green"},
            }
        )

    async def _supports(self, request: web.Request) -> web.Response:
        if ProviderFault.REFUSE_TEMPLATE in self.faults:
            raise web.HTTPNotFound
        return web.json_response({"version": self._template(request).get("version", 1)})

    async def _ask(self, request: web.Request) -> web.Response:
        application = await self._understand(request)
        rows = await self._changes(application)
        cells = "".join(
            "<tr>"
            + "".join(f"<td>{html.escape(text)}</td>" for text in (what, row.type, row.name, row.value))
            + "</tr>"
            for what, row in rows
        )
        template = application.template
        shown = {
            "provider": NAME,
            "domain": application.fqdn,
            "service": template["serviceName"],
            "partner": template["providerName"],
        }
        page = self._page.substitute({name: html.escape(text) for name, text in shown.items()}, rows=cells)
        return web.Response(text=page, content_type="text/html", headers={"Referrer-Policy": "no-referrer"})

    async def _decide(self, request: web.Request) -> web.Response:
        application = await self._understand(request)
        if (await request.post()).get("decision") != "connect":
            return self._return(application, error="access_denied", error_description="user_cancel: <b>not now</b>")
        if ProviderFault.FAIL in self.faults:
            return self._return(application, error="server_error", error_description="the zone is locked")
        if ProviderFault.LIE not in self.faults:
            await self._apply(application)
        if ProviderFault.FAIL_AFTERWARDS in self.faults:
            return self._return(application, error="server_error")
        return self._return(application)

    def _return(self, application: _Application, **outcome: str) -> web.Response:
        query = dict(outcome)
        if "state" in application.given:
            query["state"] = "another" if ProviderFault.BAD_STATE in self.faults else application.given["state"]
        target = application.given["redirect_uri"]
        location = f"{target}{'&' if '?' in target else '?'}{urlencode(query)}"
        return web.Response(status=302, headers={"Location": location})

    # The request -------------------------------------------------------------------------------------------------

    def _template(self, request: web.Request) -> Mapping[str, Any]:
        try:
            return self._templates[request.match_info["provider"], request.match_info["service"]]
        except KeyError as error:
            raise web.HTTPNotFound from error

    async def _understand(self, request: web.Request) -> _Application:
        template, query = self._template(request), request.rel_url.raw_query_string
        given = dict(parse_qsl(query, keep_blank_values=True))
        if given.get("domain") != self._apex:
            raise web.HTTPForbidden(text="the domain is in no account here\n")
        if template.get("hostRequired") and not given.get("host"):
            raise web.HTTPBadRequest(text="the template needs a host\n")
        if "syncPubKeyDomain" in template and not await self._is_signed(template["syncPubKeyDomain"], query):
            raise web.HTTPForbidden(text="the signature is not valid\n")
        return _Application(template, given)

    async def _is_signed(self, key_domain: str, query: str) -> bool:
        """Return whether the query as received, without ``sig`` and ``key``, has a valid signature."""
        pairs = [pair.partition("=") for pair in query.split("&")]
        content = "&".join(f"{name}={value}" for name, _, value in pairs if name not in ("sig", "key"))
        found = {name: unquote(value) for name, _, value in pairs if name in ("sig", "key")}
        if set(found) != {"sig", "key"}:
            return False
        key = await self._public_key(f"{found['key']}.{key_domain}")
        if key is None:
            return False
        try:
            key.verify(base64.b64decode(found["sig"], validate=True), content.encode(), PKCS1v15(), SHA256())
        except (InvalidSignature, ValueError):
            return False
        return True

    async def _public_key(self, name: str) -> RSAPublicKey | None:
        fragments: dict[int, str] = {}
        for text in await _ask(self._resolver, name, "TXT"):
            fields = dict(pair.split("=", 1) for pair in _unquoted(text).split(","))
            if fields.get("a", "RS256") != "RS256" or fields.get("t", "x509") != "x509":
                return None
            fragments[int(fields["p"])] = fields["d"]
        if not fragments:
            return None
        key = load_der_public_key(base64.b64decode("".join(fragments[part] for part in sorted(fragments))))
        return key if isinstance(key, RSAPublicKey) else None

    # The zone ----------------------------------------------------------------------------------------------------

    async def _changes(self, application: _Application) -> list[tuple[str, ZoneRow]]:
        rows = application.rows()
        gone = [
            ("remove", ZoneRow(name, kind, value, 0)) for name, kind, value in await self._conflicts(application, rows)
        ]
        return [*gone, *(("add", row) for row in rows)]

    async def _apply(self, application: _Application) -> None:
        rows = application.rows()
        await self._store.write(await self._conflicts(application, rows), rows)
        self.applied += 1

    async def _conflicts(self, application: _Application, rows: Sequence[ZoneRow]) -> list[tuple[str, str, str]]:
        """Return the records that the draft's Conflict Detection finds, for the types that templates have."""
        found: list[tuple[str, str, str]] = []
        for name in dict.fromkeys(row.name for row in rows):
            written = {row.type for row in rows if row.name == name}
            for kind in _TYPES:
                for value in await self._store.values(name, kind):
                    if _conflicts(written, kind, _unquoted(value), application.prefixes(name)):
                        found.append((name, kind, value))
        return found


@dataclass(frozen=True, slots=True)
class _Application:
    """One template with one request's parameters."""

    template: Mapping[str, Any]
    given: Mapping[str, str]

    @property
    def fqdn(self) -> str:
        return f"{self.given['host']}.{self.given['domain']}" if self.given.get("host") else self.given["domain"]

    def rows(self) -> list[ZoneRow]:
        return [ZoneRow(self._name(each), each["type"], self._value(each), int(each["ttl"])) for each in self._active()]

    def prefixes(self, name: str) -> tuple[str, ...]:
        """Return the prefixes of texts at `name` that the template replaces."""
        return tuple(
            each["txtConflictMatchingPrefix"]
            for each in self._active()
            if each.get("txtConflictMatchingMode") == "Prefix" and self._name(each) == name
        )

    def _active(self) -> list[Mapping[str, Any]]:
        groups = self.given.get("groupId")
        wanted = None if groups is None else groups.split(",")
        return [each for each in self.template["records"] if wanted is None or each.get("groupId", wanted[0]) in wanted]

    def _name(self, record: Mapping[str, Any]) -> str:
        host = self._filled(record["host"])
        if host in ("", "@"):
            return self.fqdn
        return host.removesuffix(".") if host.endswith(".") else f"{host}.{self.fqdn}"

    def _value(self, record: Mapping[str, Any]) -> str:
        if record["type"] == "TXT":
            data = self._filled(record["data"])
            return data if data.startswith('"') else f'"{data}"'
        target = self._filled(record["pointsTo"])
        if record["type"] in ("A", "AAAA"):
            return target
        target = f"{self.fqdn if target == '@' else target.removesuffix('.')}."
        return f"{record['priority']} {target}" if record["type"] == "MX" else target

    def _filled(self, field: str) -> str:
        parts = field.split("%")
        parts[1::2] = [self._variable(name) for name in parts[1::2]]
        return "".join(parts)

    def _variable(self, name: str) -> str:
        built_in = {"host": self.given.get("host", ""), "domain": self.given["domain"], "fqdn": self.fqdn}
        try:
            return built_in.get(name) or self.given[name]
        except KeyError as error:
            raise web.HTTPBadRequest(text=f"no value for {quote(name)}\n") from error


def _conflicts(written: set[str], kind: str, text: str, prefixes: tuple[str, ...]) -> bool:
    if "CNAME" in written or kind == "CNAME":
        return True
    if kind in ("A", "AAAA"):
        return bool(written & {"A", "AAAA"})
    if kind == "TXT":
        return "TXT" in written and text.startswith(prefixes) if prefixes else False
    return kind in ("MX", "SRV") and kind in written


def _unquoted(value: str) -> str:
    """Return a TXT record's strings, joined."""
    return "".join(value.split('"')[1::2]) if value.startswith('"') else value


async def _ask(server: HostPort, name: str, kind: str) -> list[str]:
    query = dns.message.make_query(name, kind)
    reply, _ = await dns.asyncquery.udp_with_fallback(query, server.host, port=server.port, timeout=_ASK_SECONDS)
    rrset = reply.get_rrset(reply.answer, query.question[0].name, dns.rdataclass.IN, dns.rdatatype.from_text(kind))
    return [] if rrset is None else [rdata.to_text() for rdata in rrset]
