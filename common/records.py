"""DNS records as partners write them, and when two of them are the same. It asks no DNS.

A record and a name server's answer are compared in one *normal form*, a line of text of the record's type:

    A, AAAA          the address as `ipaddress` writes it (RFC 5952)
    CNAME, NS, PTR   a name: A-labels in lower case, no trailing dot
    MX               ``10 mail.example``
    SRV              ``priority weight port name``
    CAA              ``flags tag value``: the tag in lower case (RFC 8659 §4.1), the value without its quotes
    TXT              the chunks joined, without quotes; what cannot be printed as RFC 1035 §5.1 escapes it
    SOA              ``mname rname refresh retry expire minimum``, or only the names

Rules
    ttl never counts, nor does an SOA's serial, which moves with every edit of its zone
    a value that is none of its type keeps its own text: no name server answers that, so it is never found
        (`api.rules.record_rules` refuses such records when they are sent)
    a text without quotes is the value itself; it is also found where the zone has it with the escapes of a zone file
        (``v=DKIM1\\; k=rsa``), or with blanks at its ends
    a name is relative only as a `host`; a host that ends with a dot is the whole name, as in a zone file
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal, cast, get_args

import dns.exception
import dns.name
import dns.ttl

from common.errors import FrontageError
from common.names import MAX_NAME_CHARACTERS

RecordType = Literal["A", "AAAA", "CNAME", "MX", "TXT", "NS", "SOA", "SRV", "PTR", "CAA"]
RECORD_TYPES: tuple[RecordType, ...] = get_args(RecordType)

APEX = "@"
LARGEST_TTL = 2**31 - 1  # RFC 2181 §8
MOST_VALUE_CHARACTERS = 65_535  # as long as a record can be
_MOST_HOST_CHARACTERS = 1024  # escapes and U-labels take more than the 255 octets of RFC 1035 §2.3.4
_MOST_U_LABELS = 42  # each takes six of those octets or more: its length, "xn--" and what follows

_LABEL_ENDS = re.compile(r"[.\u3002\uff0e\uff61]")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_*-]{1,63}(?:\.[A-Za-z0-9_*-]{1,63})*\.?")
_QUOTED_TEXT = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+', re.DOTALL)
_CHUNK = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:([0-9]{3})|(.))", re.DOTALL)
_PREFERENCE = re.compile(r"\s*([0-9]{1,5})\s+(\S.*)", re.DOTALL)
_SHORT = re.compile(r"[0-9]{1,5}")


class InvalidRecord(FrontageError):
    """Input that is not a valid DNS record."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record to watch, as its partner wrote it.

    `ttl` is in seconds; `priority` belongs to MX alone, where it may be left out or stand in the value (``10
    mail.example.``).
    """

    type: RecordType
    host: str
    value: str
    ttl: int
    priority: str | None = None


def parse_record(given: Any) -> Record:
    """Parse the record that a JSON object describes; unknown fields are ignored, null is the same as absent.

    Raises: `InvalidRecord`.
    """
    if not isinstance(given, Mapping):
        raise InvalidRecord("a DNS record is an object")
    kind = given.get("type")
    if kind not in RECORD_TYPES:
        raise InvalidRecord(f"type must be one of {', '.join(RECORD_TYPES)}")
    host, value, ttl = _text(given, "host"), _text(given, "value"), given.get("ttl")
    if len(host) > _MOST_HOST_CHARACTERS or len(value) > MOST_VALUE_CHARACTERS:
        raise InvalidRecord("no DNS record has such a long host or value")
    if host.strip() != APEX and not _is_name(host.strip()):
        raise InvalidRecord("host must be a name, relative to the domain, or @")
    if not isinstance(ttl, int) or isinstance(ttl, bool) or not 0 < ttl <= LARGEST_TTL:
        raise InvalidRecord("ttl must be a whole number of seconds greater than 0")
    return Record(cast("RecordType", kind), host, value, ttl, _priority(kind, given.get("priority")))


def _text(given: Mapping[str, Any], field: str) -> str:
    text = given.get(field)
    if not isinstance(text, str) or not text.strip():
        raise InvalidRecord(f"{field} must be text and not empty")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidRecord(f"{field} has characters that no record has")
    return text


def _priority(kind: str, priority: Any) -> str | None:
    if priority is None:
        return None
    if kind != "MX":
        raise InvalidRecord("only MX records have a priority")
    if not isinstance(priority, str) or not _SHORT.fullmatch(priority) or int(priority) > 65_535:
        raise InvalidRecord("priority must be text: a number from 0 to 65535")
    return priority


def as_json(record: Record) -> dict[str, Any]:
    """Return the record as the API shows it and Postgres stores it; `from_json` reads it back."""
    fields: dict[str, Any] = {"type": record.type, "host": record.host, "value": record.value, "ttl": record.ttl}
    return fields if record.priority is None else fields | {"priority": record.priority}


def from_json(stored: Mapping[str, Any]) -> Record:
    """Rebuild the record that `as_json` wrote, without checking it."""
    return Record(**stored)


def identity(record: Record) -> tuple[str, str, str, str | None]:
    """Return type, host, value and priority in normal form, equal for what DNS cannot tell apart, whatever its ttl."""
    priority, value = split_priority(record)
    return record.type, normal_name(record.host), normal_value(record.type, value), priority


def owner_name(record: Record, domain: str) -> str:
    """Return the name that holds the record, in normal form; `domain` is the apex."""
    host = record.host.strip()
    if host == APEX:
        return normal_name(domain)
    return normal_name(host if host.endswith(".") else f"{host}.{domain}")


def split_priority(record: Record) -> tuple[str | None, str]:
    """Return an MX record's priority, wherever it was written, and the rest of its value.

    The priority has no leading zeros. Records of other types have none.
    """
    if record.type != "MX":
        return None, record.value
    written, rest = preference(record.value)
    if written is not None and (record.priority is None or int(record.priority) == int(written)):
        return str(int(written)), rest
    return record.priority and str(int(record.priority)), record.value


def preference(value: str) -> tuple[str | None, str]:
    """Return an MX value's priority as written before its host, or None, and the rest (RFC 1035 §3.3.9)."""
    written = _PREFERENCE.fullmatch(value)
    return (written[1], written[2]) if written else (None, value)


def matches(record: Record, values: Collection[str]) -> bool:
    """Return whether `record` is among the values of its owner, each in normal form."""
    priority, value = split_priority(record)
    normal = normal_value(record.type, value)
    if record.type == "MX":
        if priority is None:
            return any(answered.partition(" ")[2] == normal for answered in values)
        return f"{priority} {normal}" in values
    if record.type == "SOA":  # as much of it as was given
        return any(f"{answered} ".startswith(f"{normal} ") for answered in values)
    if record.type == "TXT":
        return not _possible_values(value, normal).isdisjoint(values)
    return normal in values


# The normal form --------------------------------------------------------------------------------------------


def normal_value(kind: str, text: str) -> str:
    """Return the normal form of a value that a person or a zone file writes.

    An MX value is taken without its priority if it has none. Text that is no value of that type comes back
    stripped.
    """
    try:
        return normalize_value(kind, text)
    except (ValueError, dns.exception.DNSException):
        return text.strip()


def normalize_value(kind: str, text: str) -> str:
    """Return the normal form as `normal_value` does, for values of that type only.

    Raises: ValueError, dns.exception.DNSException.
    """
    return _NORMAL[kind](text.strip())


def normal_name(text: str) -> str:
    """Return a name in lower-case A-labels without its final dot; text that is no name comes back in lower case."""
    text = text.strip()
    if not _PLAIN_NAME.fullmatch(text):
        name = _parsed_name(text)
        text = text if name is None else name.to_text()
    return text.lower() if text == "." else text.lower().removesuffix(".")


def text_of(octets: bytes) -> str:
    """Spell a text's octets so that people can read them and no two texts look the same."""
    try:
        text = octets.decode()
    except UnicodeDecodeError:
        text = ""
    if octets and (not text.isprintable() or "\\" in text or not text):
        return "".join(chr(octet) if 32 <= octet < 127 and octet != 92 else f"\\{octet:03d}" for octet in octets)
    return text


def _is_name(text: str) -> bool:
    if len(text) < MAX_NAME_CHARACTERS and _PLAIN_NAME.fullmatch(text):
        return True
    return text.isprintable() and " " not in text and _parsed_name(text) is not None


def _parsed_name(text: str) -> dns.name.Name | None:
    """Parse a name, or return None, and do so before IDNA's work for text that cannot be one."""
    if len(text) > _MOST_HOST_CHARACTERS:
        return None
    if not text.isascii() and sum(not label.isascii() for label in _LABEL_ENDS.split(text)) > _MOST_U_LABELS:
        return None
    try:
        return dns.name.from_text(text, dns.name.root, dns.name.IDNA_2008_Practical)
    except (dns.exception.DNSException, UnicodeError):
        return None


def _address_v4(text: str) -> str:
    return str(IPv4Address(text))


def _address_v6(text: str) -> str:
    address = IPv6Address(text)
    if address.scope_id:
        raise ValueError("an address with a scope is no record")
    return str(address)


def _exchange(text: str) -> str:
    written = _PREFERENCE.fullmatch(text)
    return f"{_number(written[1])} {normal_name(written[2])}" if written else normal_name(text)


def _text_value(text: str) -> str:
    if not _QUOTED_TEXT.fullmatch(text):
        return text_of(text.encode())
    return text_of(b"".join(_unescaped(chunk[1]) for chunk in _CHUNK.finditer(text)))


def _possible_values(text: str, normal: str) -> set[str]:
    """Return what else a text may mean, from people who took it from a form or from a zone file."""
    readings = {normal}
    if not _QUOTED_TEXT.fullmatch(text.strip()):
        readings.add(text_of(text.encode()))
        with suppress(ValueError):
            readings.add(text_of(_unescaped(text.strip())))
    return readings


def _unescaped(chunk: str) -> bytes:
    """Resolve the escapes of a zone file.

    Raises: ValueError for an octet above 255.
    """
    octets, position = bytearray(), 0
    for escape in _ESCAPE.finditer(chunk):
        octets += chunk[position : escape.start()].encode()
        octets += bytes([int(escape[1])]) if escape[1] else escape[2].encode()
        position = escape.end()
    return bytes(octets + chunk[position:].encode())


def _service(text: str) -> str:
    priority, weight, port, target = text.split()
    return f"{_number(priority)} {_number(weight)} {_number(port)} {normal_name(target)}"


def _authorization(text: str) -> str:
    flags, tag, value = text.split(None, 2)
    return authorization(int(_number(flags)), tag, _text_value(value))


def authorization(flags: int, tag: str, value: str) -> str:
    """Return a CAA record's normal form.

    The issuer it names is a domain name, its parameters are not (RFC 8659 §4.2).
    """
    tag = tag.lower()
    if tag in ("issue", "issuewild"):
        issuer, semicolon, parameters = value.partition(";")
        value = issuer.strip().lower().removesuffix(".") + semicolon + parameters.strip()
    return f"{flags} {tag} {value}"


def _start_of_authority(text: str) -> str:
    """Normalize all seven fields, or only the first one or two: the primary server, and the mailbox."""
    names, numbers = (fields := text.replace("(", " ").replace(")", " ").split())[:2], fields[2:]
    if len(numbers) not in (0, 5):
        raise ValueError("an SOA record has seven fields")
    _serial, times = numbers[:1], numbers[1:]
    return " ".join((*map(normal_name, names), *(str(dns.ttl.from_text(time)) for time in times)))


def _number(text: str) -> int:
    if not _SHORT.fullmatch(text) or int(text) > 65_535:
        raise ValueError("a number of two octets was expected")
    return int(text)


_NORMAL: Mapping[str, Callable[[str], str]] = {
    "A": _address_v4,
    "AAAA": _address_v6,
    "CNAME": normal_name,
    "MX": _exchange,
    "TXT": _text_value,
    "NS": normal_name,
    "SOA": _start_of_authority,
    "SRV": _service,
    "PTR": normal_name,
    "CAA": _authorization,
}
