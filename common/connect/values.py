"""Values between their normal form (`common.records`) and what a name server or a provider's form takes."""

from __future__ import annotations

import re

import dns.rdata
import dns.rdataclass
import dns.rdatatype

from common.records import RecordType

_ESCAPE = re.compile(r"\\([0-9]{3})")
_CHUNK_OCTETS = 255  # RFC 1035 §3.3.14
NAME_TYPES = frozenset({"CNAME", "NS", "PTR", "MX", "SRV"})
"""Values of these types end in a name."""


def as_rdata(kind: RecordType, normal: str) -> dns.rdata.Rdata:
    """Convert a value to dnspython's form.

    Raises: dns.exception.DNSException for what is no value of that type.
    """
    return dns.rdata.from_text(dns.rdataclass.IN, dns.rdatatype.from_text(kind), zone_file_text(kind, normal))


def zone_file_text(kind: RecordType, normal: str) -> str:
    """Spell a value as in a zone file.

    Names are whole and end with a dot, texts are quoted, in chunks of at most 255 octets.
    """
    if kind == "TXT":
        octets = octets_of(normal)
        chunks = [octets[at : at + _CHUNK_OCTETS] for at in range(0, len(octets), _CHUNK_OCTETS)] or [b""]
        return " ".join(f'"{_escaped(chunk)}"' for chunk in chunks)
    if kind == "CAA":
        flags, tag, value = normal.split(" ", 2)
        return f'{flags} {tag} "{_escaped(octets_of(value))}"'
    if kind in NAME_TYPES:
        return f"{normal}." if not normal.endswith(".") else normal
    return normal


def form_text(kind: RecordType, normal: str) -> tuple[str, str | None]:
    """Spell a value as forms and APIs take it; an MX record's priority apart.

    Names stand without the final dot, texts without quotes.
    """
    if kind == "MX":
        priority, _, host = normal.partition(" ")
        return host, priority
    if kind == "CAA":
        flags, tag, value = normal.split(" ", 2)
        return f'{flags} {tag} "{value}"', None
    if kind == "TXT":
        return octets_of(normal).decode("utf-8", "surrogateescape"), None
    return normal, None


def octets_of(text: str) -> bytes:
    """Return the octets that `common.records.text_of` made readable."""
    if "\\" not in text:
        return text.encode()
    return _ESCAPE.sub(lambda found: chr(int(found[1])), text).encode("latin-1")


def _escaped(octets: bytes) -> str:
    return "".join(
        chr(octet) if 32 <= octet < 127 and chr(octet) not in '"\\' else f"\\{octet:03d}" for octet in octets
    )
