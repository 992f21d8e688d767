"""Which records a zone can hold: the values of each type, and the names a record may stand at.

`common.records` reads a record's form; this module refuses what a name server can never answer, since a monitor would
report such a record as missing for ever.

Rules
    A, AAAA             an address of that family (RFC 1035 §3.4.1, RFC 3596 §2.2)
    CNAME, NS, PTR      a host name: letters, digits, hyphens and underscores; not an address (RFC 1123 §2.1)
    MX                  a host name, or ``.`` for no mail (RFC 7505); a priority in the value and one beside it agree
    SRV                 priority, weight, port and a host name, or ``.`` (RFC 2782)
    CAA                 flags from 0 to 255, a tag of letters and digits, a value (RFC 8659 §4.1)
    SOA                 the primary name server, also the mailbox, or all seven fields (RFC 1035 §3.3.13)
    TXT                 any text; escapes in a quoted one are octets
    one name's records  at most `MOST_RECORDS`, with at most `MOST_OCTETS` of hosts and values
    host                relative to the domain: without the domain at its end; the whole name has at most 253 characters
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import dns.exception

from common.names import MAX_NAME_CHARACTERS
from common.records import (
    APEX,
    InvalidRecord,
    Record,
    RecordType,
    normal_name,
    normalize_value,
    owner_name,
    preference,
)

MOST_RECORDS = 500
"""Most records of one monitored name: more than most zones have, and a bound on what one check may ask."""
MOST_OCTETS = 65_536
"""Most octets of a monitored name's hosts and values: as much as the longest DNS message (RFC 1035 §4.2.2)."""

_ROOT = "."
_HOST_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_CAA = re.compile(r"([0-9]{1,3})\s+([A-Za-z0-9]+)\s+(\S.*)", re.DOTALL)

_EXPECTED: Mapping[RecordType, str] = {
    "A": "an IPv4 address, such as 192.0.2.1",
    "AAAA": "an IPv6 address, such as 2001:db8::1",
    "CNAME": "a host name, such as shops.example.com",
    "MX": "a mail server's host name, such as mail.example.com, with the priority before it or in priority",
    "TXT": "text; in quotes, an escape is \\000 to \\255",
    "NS": "a name server's host name, such as ns1.example.com",
    "SOA": "the primary name server, and after it the mailbox, or all seven fields",
    "SRV": "priority, weight, port and host name, such as 10 5 5060 sip.example.com",
    "PTR": "a host name, such as host.example.com",
    "CAA": 'flags, tag and value, such as 0 issue "ca.example.net"',
}


def check_record(record: Record, domain: str) -> None:
    """Refuse a record that no zone can hold. `domain` is the apex, in lower-case A-labels.

    Raises: `InvalidRecord` for a record that no zone of `domain` can hold.
    """
    _check_host(record, domain)
    try:
        is_possible = _IS_POSSIBLE[record.type](record.value.strip())
        normalize_value(record.type, record.value)
    except (ValueError, dns.exception.DNSException):
        is_possible = False
    if not is_possible:
        raise InvalidRecord(f"value must be {_EXPECTED[record.type]}")
    if record.type == "MX":
        _check_priority(record)


def check_size(records: Sequence[Record]) -> None:
    """Refuse more or longer records than one name may have.

    Raises: `InvalidRecord`.
    """
    if len(records) > MOST_RECORDS:
        raise InvalidRecord(f"at most {MOST_RECORDS} records under one name")
    if sum(len(record.host.encode()) + len(record.value.encode()) for record in records) > MOST_OCTETS:
        raise InvalidRecord(f"at most {MOST_OCTETS} octets of hosts and values under one name")


def _check_host(record: Record, domain: str) -> None:
    host = normal_name(record.host)
    if not record.host.strip().endswith(".") and f".{host}".endswith(f".{domain}"):
        relative = host.removesuffix(domain).removesuffix(".") or APEX
        raise InvalidRecord(f"host is relative to {domain}: send {relative}, not {host}")
    if len(owner_name(record, domain)) > MAX_NAME_CHARACTERS:
        raise InvalidRecord(f"host and {domain} make a name of more than {MAX_NAME_CHARACTERS} characters")


def _check_priority(record: Record) -> None:
    within, _ = preference(record.value)
    if within is None or record.priority is None:
        return
    if int(within) != int(record.priority):
        raise InvalidRecord(f"priority {record.priority} contradicts the value's {int(within)}")


def _is_host_name(text: str) -> bool:
    """Return whether a text is a host name.

    No top-level domain is a number (RFC 3696 §2), so an IPv4 address is no host name.
    """
    name = normal_name(text)
    labels = name.split(".")
    return len(name) <= MAX_NAME_CHARACTERS and all(map(_HOST_LABEL.fullmatch, labels)) and not labels[-1].isdigit()


def _is_host_name_or_root(text: str) -> bool:
    return text == _ROOT or _is_host_name(text)


def _is_mail_exchange(text: str) -> bool:
    return _is_host_name_or_root(preference(text)[1])


def _is_service(text: str) -> bool:
    fields = text.split()
    return len(fields) == 4 and _is_host_name_or_root(fields[3])


def _is_authorization(text: str) -> bool:
    fields = _CAA.fullmatch(text)
    return fields is not None and int(fields[1]) <= 255


def _is_start_of_authority(text: str) -> bool:
    fields = text.replace("(", " ").split()
    return bool(fields) and _is_host_name(fields[0])


def _is_anything(_: str) -> bool:
    return True


_IS_POSSIBLE: Mapping[RecordType, Callable[[str], bool]] = {
    "A": _is_anything,
    "AAAA": _is_anything,
    "CNAME": _is_host_name,
    "MX": _is_mail_exchange,
    "TXT": _is_anything,
    "NS": _is_host_name,
    "SOA": _is_start_of_authority,
    "SRV": _is_service,
    "PTR": _is_host_name,
    "CAA": _is_authorization,
}
