"""RFC 2136: the changes of a plan as one update, signed by TSIG (RFC 8945).

The update is atomic, and its prerequisites (RFC 2136 §2.4) are the record sets as the plan knows them: a server whose
zone has changed since refuses the whole update.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

import dns.asyncquery
import dns.exception
import dns.message
import dns.name
import dns.rcode
import dns.rdataset
import dns.rdatatype
import dns.tsig
import dns.tsigkeyring
import dns.update

from common.addresses import AddressPolicy
from common.connect.values import as_rdata
from common.connect.ways.problems import WayFailed
from common.dns import Resolver
from common.dynamic_updates import ALGORITHMS, KeyRefused, ServerSilent, new_update, read_key, send_update
from common.errors import AddressRefused
from common.flows.plan import Change
from common.host_ports import HostPort, parse_host_port
from common.ip_addresses import parse_address

_PORT = 53

_PROBLEMS: Final[Mapping[dns.rcode.Rcode, tuple[str, str]]] = {
    dns.rcode.REFUSED: ("not_allowed", "The name server does not let this key change the zone."),
    dns.rcode.NOTAUTH: ("wrong_token", "The name server does not know this key, or does not have the zone."),
    dns.rcode.NOTZONE: ("zone_not_found", "The name server does not have the zone."),
    dns.rcode.NXRRSET: ("zone_changed", "The zone has changed since the plan was made. Nothing is written."),
    dns.rcode.YXRRSET: ("zone_changed", "The zone has changed since the plan was made. Nothing is written."),
    dns.rcode.NXDOMAIN: ("zone_changed", "The zone has changed since the plan was made. Nothing is written."),
    dns.rcode.YXDOMAIN: ("zone_changed", "The zone has changed since the plan was made. Nothing is written."),
}


@dataclass(frozen=True, slots=True)
class DynamicUpdate:
    """Writes plans into zones by RFC 2136. A process makes one; every call brings its key."""

    resolver: Resolver
    policy: AddressPolicy

    async def write(
        self, apex: str, changes: Sequence[Change], credentials: Mapping[str, str], primary: str | None
    ) -> None:
        """Write the changes of a plan in one update.

        `primary`: the zone's primary server by its SOA record, which gets the update unless the credentials
        name another.

        Raises: `WayFailed`; then nothing is written, unless the code is ``provider_unreachable``.
        """
        server = await self._find_server(credentials.get("server") or primary)
        update = make_update(apex, changes, credentials)
        try:
            code = await send_update(update, server)
        except KeyRefused as error:
            raise _refused(error) from error
        except ServerSilent as error:
            raise WayFailed("provider_unreachable", "The name server did not answer.") from error
        if code != dns.rcode.NOERROR:
            words = f"The name server answered {dns.rcode.to_text(code)}."
            raise WayFailed(*_PROBLEMS.get(code, ("provider_refused", words)))

    async def _find_server(self, text: str | None) -> HostPort:
        """Return an address of the server that may be dialled.

        Raises: `WayFailed`.
        """
        if text is None:
            raise WayFailed("credentials_missing", "The zone names no primary server: give its address.", ("server",))
        try:
            given = parse_host_port(text, _PORT)
        except ValueError as error:
            raise WayFailed("address_refused", "The server is a host, or host:port.", ("server",)) from error
        addresses = [given.host] if parse_address(given.host) else await self._resolve(given.host)
        for address in addresses:
            try:
                self.policy.check(ip_address(address), given.port)
            except AddressRefused:
                continue
            return HostPort(address, given.port)
        if addresses:
            raise WayFailed("address_refused", "The server's address may not be dialled.", ("server",))
        raise WayFailed("provider_unreachable", "The server's name has no address.", ("server",))

    async def _resolve(self, host: str) -> list[str]:
        async with self.resolver.open_pass() as questions:
            answers = await asyncio.gather(questions.ask(host, "A"), questions.ask(host, "AAAA"))
        return [value for answer in answers for value in answer.values]


def make_update(apex: str, changes: Sequence[Change], credentials: Mapping[str, str]) -> dns.update.UpdateMessage:
    """Make the signed message that writes the changes.

    Raises: `WayFailed` for a key that cannot be read.
    """
    update = new_update(apex, _key(credentials))
    for change in changes:
        name = dns.name.from_text(change.name)
        if change.before:
            update.present(name, _rdataset(change, change.before, ttl=0))
        else:
            update.absent(name, change.type)
    # All that goes, before anything comes: a CNAME and other records are never there together (RFC 2136 §3.4.2.2).
    for change in changes:
        if change.before:
            update.delete(dns.name.from_text(change.name), change.type)
    for change in changes:
        if change.after:
            update.add(dns.name.from_text(change.name), _rdataset(change, change.after, ttl=change.ttl))
    return update


def _rdataset(change: Change, values: Sequence[str], *, ttl: int) -> dns.rdataset.Rdataset:
    return dns.rdataset.from_rdata_list(ttl, [as_rdata(change.type, value) for value in values])


def _key(credentials: Mapping[str, str]) -> dns.tsig.Key:
    missing = tuple(name for name in ("key_name", "key_secret") if not credentials.get(name, "").strip())
    if missing:
        raise WayFailed("credentials_missing", "The name and the secret of the TSIG key are needed.", missing)
    name, secret = credentials["key_name"].strip(), credentials["key_secret"].strip()
    try:
        dns.name.from_text(name)
    except (dns.exception.DNSException, UnicodeError) as error:
        raise WayFailed("credentials_missing", "The key's name is none.", ("key_name",)) from error
    try:
        return read_key(name, secret, _algorithm(credentials))
    except ValueError as error:
        raise WayFailed("wrong_token", "The key cannot be read: its secret is base64.", ("key_secret",)) from error


def _refused(error: KeyRefused) -> WayFailed:
    """Return what the person is to look at: a server answers an unknown key otherwise than a wrong secret."""
    match error.part:
        case "key":
            words = "The name server knows no key of this name with this algorithm."
            return WayFailed("wrong_token", words, ("key_name", "key_algorithm"))
        case "secret":
            return WayFailed("wrong_token", "The name server has another secret for this key.", ("key_secret",))
        case "clock":
            return WayFailed("provider_refused", "The name server's clock and this service's differ by minutes.")
    return WayFailed("wrong_token", "The name server does not accept this key.")


def _algorithm(credentials: Mapping[str, str]) -> str:
    text = (credentials.get("key_algorithm") or "hmac-sha256").strip().lower().removesuffix(".")
    if text not in ALGORITHMS:
        words = f"The algorithm is one of {', '.join(sorted(ALGORITHMS))}."
        raise WayFailed("credentials_missing", words, ("key_algorithm",))
    return text
