"""DNS messages of one plain question and its reply (RFC 1035 §4). Pure.

dnspython reads and writes any message, at ten times the cost. This module reads only the reply that a zone's own server
gives about a record that is there, and returns None for every other: `common.dns.replies` then reads it by dnspython.

Rules
    a reply belongs to a query only with the same id and the same question, in any case of letters (RFC 5452 §9.1,
        RFC 4343); servers that refuse may leave the question out
    an answer counts only if it is authoritative, whole and without an error, all of its records have the name and the
        type of the question, and the message ends where its last record ends
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from ipaddress import IPv6Address
from types import MappingProxyType

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
_EDNS = b"\0" + _RECORD.pack(_OPT, PAYLOAD_BYTES, 0, 0)  # RFC 6891 §6.1.2
_POINTER = 0xC0
_QUESTION_POINTER = 0xC000 | _HEAD.size
_MOST_LABELS = 127
_MOST_NAME_BYTES = 255
_PLAIN_LABEL = re.compile(rb"[A-Za-z0-9_*-]+")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_*-]{1,63}(?:\.[A-Za-z0-9_*-]{1,63})*\.?")
_WITHOUT_QUESTION = (dns.rcode.FORMERR, dns.rcode.SERVFAIL, dns.rcode.NOTIMP, dns.rcode.REFUSED)

_TYPES: Mapping[str, int] = MappingProxyType({kind: int(dns.rdatatype.from_text(kind)) for kind in RECORD_TYPES})


class _Unread(Exception):
    """A message that this module does not read."""


def encode_query(name: str, kind: RecordType, query_id: int, *, recursion: bool, edns: bool) -> bytes:
    """Raises: `dns.exception.DNSException` for a name that no zone can have."""
    head = _HEAD.pack(query_id, _RECURSION if recursion else 0, 1, 0, 0, int(edns))
    return head + _encode_name(name) + struct.pack("!HH", _TYPES[kind], _INTERNET) + (_EDNS if edns else b"")


def is_reply(message: bytes, query: bytes) -> bool:
    """Whether `message` claims to be the reply to `query`, as `encode_query` made it."""
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
    return bool(_HEAD.unpack_from(message)[1] & _TRUNCATED)


def lacks_edns(message: bytes) -> bool:
    """Whether the server is from before EDNS (RFC 6891 §7, RFC 2671 §5.3)."""
    return _HEAD.unpack_from(message)[1] & _RCODE in (dns.rcode.FORMERR, dns.rcode.NOTIMP)


def read_present(message: bytes, query: bytes, kind: RecordType) -> Answer | None:
    """The records of a reply (`is_reply`) by the rules above; None for any other reply. `ttl_seconds` is their largest
    TTL."""
    try:
        return _read_present(message, _question(query), kind)
    except (_Unread, struct.error, IndexError):
        return None


def _read_present(message: bytes, question: bytes, kind: RecordType) -> Answer | None:
    _, flags, questions, answers, *others = _HEAD.unpack_from(message)
    if not flags & _AUTHORITATIVE or flags & (_TRUNCATED | _RCODE) or questions != 1 or not answers:
        return None
    own_name, values, ttl_seconds = question[:-4].lower(), [], 0
    position = _HEAD.size + len(question)
    for number in range(answers + sum(others)):
        begins = position
        position = _after_name(message, position)
        record_type, record_class, ttl, size = _RECORD.unpack_from(message, position)
        position += _RECORD.size
        if number < answers:
            is_own = _is_pointer_to_question(message, begins) or message[begins:][: len(own_name)].lower() == own_name
            if not is_own or record_type != _TYPES[kind] or record_class != _INTERNET or ttl > LARGEST_TTL:
                return None
            values.append(_value(message, position, size, kind))
            ttl_seconds = max(ttl_seconds, ttl)
        elif record_type == _OPT and ttl >> 24:  # the upper bits of an error code (RFC 6891 §6.1.3)
            return None
        position += size
    if position != len(message):
        return None
    return Answer(Outcome.RECORDS, tuple(dict.fromkeys(values)), ttl_seconds=ttl_seconds)


def _question(query: bytes) -> bytes:
    """The name, the type and the class."""
    return query[_HEAD.size : _after_name(query, _HEAD.size) + 4]


def _encode_name(name: str) -> bytes:
    if not _PLAIN_NAME.fullmatch(name) or len(name) > _MOST_NAME_BYTES - 2:
        return dns.name.from_text(name).to_wire() or b""
    labels = name.removesuffix(".").encode().split(b".")
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _is_pointer_to_question(message: bytes, position: int) -> bool:
    return message[position : position + 2] == _QUESTION_POINTER.to_bytes(2)


def _after_name(message: bytes, position: int) -> int:
    while size := message[position]:
        if size >= _POINTER:
            return position + 2
        position += 1 + size
    return position + 1


def _value(message: bytes, position: int, size: int, kind: RecordType) -> str:
    """In normal form (`common.records`)."""
    data = message[position : position + size]
    if len(data) < size:
        raise _Unread
    if kind == "A" and size == 4:
        return "{}.{}.{}.{}".format(*data)
    if kind == "AAAA" and size == 16:
        return str(IPv6Address(data))
    if kind == "TXT" and size:
        return text_of(_joined_texts(data))
    if kind in ("CNAME", "NS", "PTR"):
        return _read_name(message, position, position + size)
    if kind == "MX" and size > 2:
        return f"{int.from_bytes(data[:2])} {_read_name(message, position + 2, position + size)}"
    raise _Unread


def _joined_texts(data: bytes) -> bytes:
    texts, position = [], 0
    while position < len(data):
        begins = position + 1
        position = begins + data[position]
        texts.append(data[begins:position])
    if position != len(data):
        raise _Unread
    return b"".join(texts)


def _read_name(message: bytes, position: int, end: int) -> str:
    """The plain name from `position` on, which must end there at `end`. Pointers lead only back, so it ends."""
    if _after_name(message, position) != end:
        raise _Unread
    labels: list[bytes] = []
    while size := message[position]:
        if size >= _POINTER:
            target = int.from_bytes(message[position : position + 2]) & 0x3FFF
            if target >= position:
                raise _Unread
            position = target
            continue
        label = message[position + 1 : position + 1 + size]
        if len(labels) == _MOST_LABELS or len(label) < size or not _PLAIN_LABEL.fullmatch(label):
            raise _Unread
        labels.append(label)
        position += 1 + size
    name = b".".join(labels)
    if not name or len(name) > _MOST_NAME_BYTES - 2:
        raise _Unread
    return name.decode().lower()
