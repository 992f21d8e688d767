"""The zones of the flows: their first content, what a flow asks for, and what another party adds.

Only `read` asks the name server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import dns.asyncquery
import dns.message

from common.host_ports import HostPort

_SECONDS = 10.0
PARENT: Final = "test"
CNAME_TARGET: Final = "apps.partner.test"
_SPF: Final = '"v=spf1 ip4:192.0.2.0/24 include:mail.test -all"'
_MERGED: Final = '"v=spf1 ip4:192.0.2.0/24 include:mail.test include:partner.test -all"'
_PROOF: Final = '"partner=a/b+c=="'

Content = frozenset[tuple[str, str, str]]
"""Host relative to the zone (@ for its apex), type and value, as a zone file has them."""

BEFORE: Final[Content] = frozenset(
    {
        ("@", "TXT", _SPF),
        ("@", "MX", "10 mail.test."),
        ("shop", "A", "192.0.2.1"),
        ("shop", "A", "192.0.2.2"),
        ("_proof", "TXT", '"before"'),
        ("www", "A", "192.0.2.3"),
    }
)
AFTER: Final[Content] = (BEFORE - {("@", "TXT", _SPF), ("shop", "A", "192.0.2.1"), ("shop", "A", "192.0.2.2")}) | {
    ("@", "TXT", _MERGED),
    ("shop", "CNAME", f"{CNAME_TARGET}."),
    ("_proof", "TXT", _PROOF),
}
_ASKED: Final = (
    ("@", "TXT"),
    ("@", "MX"),
    ("shop", "A"),
    ("shop", "CNAME"),
    ("_proof", "TXT"),
    ("www", "A"),
    ("foreign", "TXT"),
)


def config(host: str) -> dict[str, Any]:
    """Return the body of a request for a flow that leads from `BEFORE` to `AFTER`."""
    url = "https://app.partner.test/shop"
    return {
        "domain": host,
        "power": True,
        "monitor": True,
        "dnsRecords": [
            {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "applicationUrl": url},
            {"type": "TXT", "host": "@", "value": "v=spf1 include:partner.test -all", "ttl": 300},
            {"type": "TXT", "host": "_proof", "value": _PROOF.strip('"'), "ttl": 300},
        ],
    }


def file_of(content: Content) -> str:
    """Render the content as a zone file."""
    return "".join(f"{host} {kind} {value}\n" for host, kind, value in sorted(content))


async def read(server: HostPort, zone: str) -> Counter[tuple[str, str, str]]:
    """Return how often the server has each record, by host, type and value."""
    found: Counter[tuple[str, str, str]] = Counter()
    for host, kind in _ASKED:
        query = dns.message.make_query(zone if host == "@" else f"{host}.{zone}", kind)
        reply = await dns.asyncquery.tcp(query, server.host, port=server.port, timeout=_SECONDS)
        for rrset in reply.answer:
            if rrset.name == query.question[0].name and rrset.rdtype == query.question[0].rdtype:
                found.update((host, kind, rdata.to_text()) for rdata in rrset)
    return found


def compared(found: Mapping[tuple[str, str, str], int], wanted: Content) -> tuple[Content, Content]:
    """Return the records that are missing, and those beyond what is wanted."""
    return wanted - found.keys(), frozenset(found) - wanted
