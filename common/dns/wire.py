"""DNS messages of one plain question and its reply (RFC 1035 §4).

dnspython reads and writes any message, at ten times the cost. This module reads only the usual replies of a zone's own
server, and those of its parent about its delegation, and returns None for every other: `common.dns.replies` then reads
it by dnspython. Both read by the rules of that module.

Rules
    a reply belongs to a query only with the same id and the same question, in any case of letters (RFC 5452 §9.1,
        RFC 4343); servers that refuse may leave the question out
    a reply is read only if it is whole, and the message ends where its last record ends
    records count only if they are authoritative and without an error, and all of the answer section have the name and
        the type of the question
    absence counts only if it is authoritative: with the SOA record of a zone that the name is in (RFC 2308 §3), or with
        a CNAME record of the name
    without authority, only the NS records of the name itself are read: its delegation
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from ipaddress import IPv6Address
from types import MappingProxyType
from typing import NamedTuple

import dns.name
import dns.rcode
import dns.rdatatype

from common.dns.questions import Answer, Outcome
from common.records import LARGEST_TTL, RECORD_TYPES, RecordType, text_of

PAYLOAD_BYTES = 1232  # as agreed on the DNS flag day of 2020

_HEAD = struct.Struct("!HHHHHH")  # id, flags, and the number of questions, answers, authorities and additionals
_RECORD = struct.Struct("!HHIH")  # type, class, TTL, length; after the name
_RESPONSE, _OPCODE, _AUTHORITATIVE, _TRUNCATED, _RECURSION, _RCODE = 0x8000, 0x7800, 0x0400, 0x0200, 0x0100, 0x000F
_INTERNET = 1
_OPT = 41
_SOA_NUMBERS = struct.Struct("!IIIII")  # serial, refresh, retry, expire, minimum; after two names
_EDNS = b"\0" + _RECORD.pack(_OPT, PAYLOAD_BYTES, 0, 0)  # RFC 6891 §6.1.2
_POINTER = 0xC0
_QUESTION_POINTER = 0xC000 | _HEAD.size
_MOST_LABELS = 127
_MOST_NAME_BYTES = 255
_PLAIN_LABEL = re.compile(rb"[A-Za-z0-9_*-]+")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_*-]{1,63}(?:\.[A-Za-z0-9_*-]{1,63})*\.?")
_WITHOUT_QUESTION = (dns.rcode.FORMERR, dns.rcode.SERVFAIL, dns.rcode.NOTIMP, dns.rcode.REFUSED)

_TYPES: Mapping[str, int] = MappingProxyType({kind: int(dns.rdatatype.from_text(kind)) for kind in RECORD_TYPES})
_CNAME, _SOA = _TYPES["CNAME"], _TYPES["SOA"]


class _UnsupportedMessage(Exception):
    """A message that this module does not read."""


def encode_query(name: str, kind: RecordType, query_id: int, *, recursion: bool, edns: bool) -> bytes:
    """Encode a query.

    Raises: `dns.exception.DNSException` for a name that no zone can have.
    """
    head = _HEAD.pack(query_id, _RECURSION if recursion else 0, 1, 0, 0, int(edns))
    return head + _encode_name(name) + struct.pack("!HH", _TYPES[kind], _INTERNET) + (_EDNS if edns else b"")


def is_reply(message: bytes, query: bytes) -> bool:
    """Return whether `message` claims to be the reply to `query`, as `encode_query` made it."""
    if len(message) < _HEAD.size or message[:2] != query[:2]:
        return False
    _, flags, questions, *_ = _HEAD.unpack_from(message)
    if not flags & _RESPONSE or flags & _OPCODE:
        return False
    if questions == 0:
        return flags & _RCODE in _WITHOUT_QUESTION
    question = _question(query)
    return questions == 1 and message[_HEAD.size :][: len(question)].lower() == question.lower()


def is_truncated(message: bytes) -> bool:
    """Return whether the server has cut the reply short, so that it must be asked for by TCP."""
    return bool(_HEAD.unpack_from(message)[1] & _TRUNCATED)


def lacks_edns(message: bytes) -> bool:
    """Return whether the server is from before EDNS (RFC 6891 §7, RFC 2671 §5.3)."""
    return _HEAD.unpack_from(message)[1] & _RCODE in (dns.rcode.FORMERR, dns.rcode.NOTIMP)


def read_reply(message: bytes, query: bytes, kind: RecordType) -> Answer | None:
    """Read what a reply (`is_reply`) answers, by the rules above; None for a reply that this module does not read.

    `ttl_seconds` is the largest TTL of the records.
    """
    try:
        return _read_reply(message, _question(query), kind)
    except (_UnsupportedMessage, struct.error, IndexError):
        return None


class _RecordPosition(NamedTuple):
    """A record of a reply, unread.

    `begins`: where its name begins; `position`: where its data begins.
    """

    begins: int
    type: int
    ttl_seconds: int
    position: int
    size: int


def _read_reply(message: bytes, question: bytes, kind: RecordType) -> Answer | None:
    _, flags, questions, *_ = _HEAD.unpack_from(message)
    rcode = flags & _RCODE
    if flags & _TRUNCATED or questions != 1 or rcode not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
        return None
    answers, authorities = _sections(message, _HEAD.size + len(question))
    own_name = question[:-4].lower()
    if not flags & _AUTHORITATIVE:
        is_delegation = kind == "NS" and not rcode and not answers
        return _records(message, own_name, kind, authorities) if is_delegation else None
    if not answers:
        if any(each.type == _SOA and _is_above(message, each, own_name) for each in authorities):
            return Answer(Outcome.NO_NAME if rcode else Outcome.NO_DATA)
        return None
    if answers[0].type == _CNAME and kind != "CNAME" and _has_name(message, answers[0].begins, own_name):
        own = [each for each in answers if _has_name(message, each.begins, own_name)]
        aliases = _records(message, own_name, "CNAME", own)
        return aliases and Answer(Outcome.NO_DATA, ttl_seconds=aliases.ttl_seconds, aliases=aliases.values)
    return None if rcode else _records(message, own_name, kind, answers)


def _sections(message: bytes, position: int) -> tuple[list[_RecordPosition], list[_RecordPosition]]:
    """Return the records of the answer and the authority section, all of class IN.

    Raises: `_UnsupportedMessage`.
    """
    _, _, _, answers, authorities, additionals = _HEAD.unpack_from(message)
    found: list[_RecordPosition] = []
    for number in range(answers + authorities + additionals):
        begins, position = position, _after_name(message, position)
        record_type, record_class, ttl, size = _RECORD.unpack_from(message, position)
        position += _RECORD.size
        if number < answers + authorities:
            if record_class != _INTERNET or ttl > LARGEST_TTL:
                raise _UnsupportedMessage
            found.append(_RecordPosition(begins, record_type, ttl, position, size))
        elif record_type == _OPT and ttl >> 24:  # the upper bits of an error code (RFC 6891 §6.1.3)
            raise _UnsupportedMessage
        position += size
    if position != len(message):
        raise _UnsupportedMessage
    return found[:answers], found[answers:]


def _records(message: bytes, own_name: bytes, kind: RecordType, found: Sequence[_RecordPosition]) -> Answer | None:
    if not found or any(each.type != _TYPES[kind] or not _has_name(message, each.begins, own_name) for each in found):
        return None
    values = dict.fromkeys(_value(message, each.position, each.size, kind) for each in found)
    return Answer(Outcome.RECORDS, tuple(values), ttl_seconds=max(each.ttl_seconds for each in found))


def _has_name(message: bytes, position: int, own_name: bytes) -> bool:
    is_pointer = message[position : position + 2] == _QUESTION_POINTER.to_bytes(2)
    return is_pointer or message[position:][: len(own_name)].lower() == own_name


def _is_above(message: bytes, soa: _RecordPosition, own_name: bytes) -> bool:
    """Return whether the zone of an SOA record has the name, itself or below.

    Raises: `_UnsupportedMessage`.
    """
    _value(message, soa.position, soa.size, "SOA")
    zone = _read_name(message, soa.begins, _after_name(message, soa.begins)).encode().split(b".")
    labels, position = [], 0
    while size := own_name[position]:
        labels.append(own_name[position + 1 : position + 1 + size])
        position += 1 + size
    return labels[-len(zone) :] == zone


def _question(query: bytes) -> bytes:
    """Return the name, the type and the class that a query asks for, as octets."""
    return query[_HEAD.size : _after_name(query, _HEAD.size) + 4]


def _encode_name(name: str) -> bytes:
    if not _PLAIN_NAME.fullmatch(name) or len(name) > _MOST_NAME_BYTES - 2:
        return dns.name.from_text(name).to_wire() or b""
    labels = name.removesuffix(".").encode().split(b".")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _after_name(message: bytes, position: int) -> int:
    while size := message[position]:
        if size >= _POINTER:
            return position + 2
        position += 1 + size
    return position + 1


def _value(message: bytes, position: int, size: int, kind: RecordType) -> str:
    """Return a record's value in normal form (`common.records`).

    Raises: `_UnsupportedMessage`.
    """
    data = message[position : position + size]
    if len(data) < size:
        raise _UnsupportedMessage
    if kind == "A" and size == 4:
        return "{}.{}.{}.{}".format(*data)
    if kind == "AAAA" and size == 16:
        return str(IPv6Address(data))
    if kind == "TXT" and size:
        return text_of(_joined_texts(data))
    if kind in ("CNAME", "NS", "PTR"):
        return _read_name(message, position, position + size)
    if kind == "SOA" and size > _SOA_NUMBERS.size:
        return _start_of_authority(message, position, position + size)
    if kind == "MX" and size > 2:
        return f"{int.from_bytes(data[:2])} {_read_name(message, position + 2, position + size)}"
    raise _UnsupportedMessage


def _start_of_authority(message: bytes, position: int, end: int) -> str:
    after_primary = _after_name(message, position)
    names_end = end - _SOA_NUMBERS.size
    names = _read_name(message, position, after_primary), _read_name(message, after_primary, names_end)
    _serial, *times = _SOA_NUMBERS.unpack_from(message, names_end)
    return " ".join((*names, *map(str, times)))


def _joined_texts(data: bytes) -> bytes:
    texts, position = [], 0
    while position < len(data):
        begins = position + 1
        position = begins + data[position]
        texts.append(data[begins:position])
    if position != len(data):
        raise _UnsupportedMessage
    return b"".join(texts)


def _read_name(message: bytes, position: int, end: int) -> str:
    """Read the plain name from `position` on, which must end there at `end`.

    Pointers lead only back, so it ends. Raises: `_UnsupportedMessage`.
    """
    if _after_name(message, position) != end:
        raise _UnsupportedMessage
    labels: list[bytes] = []
    while size := message[position]:
        if size >= _POINTER:
            target = int.from_bytes(message[position : position + 2]) & 0x3FFF
            if target >= position:
                raise _UnsupportedMessage
            position = target
            continue
        label = message[position + 1 : position + 1 + size]
        if len(labels) == _MOST_LABELS or len(label) < size or not _PLAIN_LABEL.fullmatch(label):
            raise _UnsupportedMessage
        labels.append(label)
        position += 1 + size
    name = b".".join(labels)
    if not name or len(name) > _MOST_NAME_BYTES - 2:
        raise _UnsupportedMessage
    return name.decode().lower()
