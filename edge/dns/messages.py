"""DNS messages: reads a question and writes a response to it (RFC 1035 §4.1, RFC 6891).

Rules
    a message that is shorter than a header, or is a response, is ignored: an answer could begin a loop
    a question has exactly one name, no compression (it has nothing to point to), and at most an OPT record behind it;
        counts are compared before anything is read, and every byte is read once
    a response repeats the question byte for byte, so that resolvers that vary its letters' case accept it
    a response that is too long is sent without records and with TC: the resolver asks again over TCP

A general library reads any message, at 30 times the cost of this one form; the tests compare this module with one.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple

MOST_QUESTION_BYTES: Final = 512
MOST_UDP_BYTES: Final = 512

NOERROR, FORMERR, SERVFAIL, NXDOMAIN, NOTIMP, REFUSED, BADVERS = 0, 1, 2, 3, 4, 5, 16
A, NS, SOA, TXT, AAAA, OPT, ANY = 1, 2, 6, 16, 28, 41, 255
IN: Final = 1

_HEADER: Final = struct.Struct("!6H")
_KIND_AND_CLASS: Final = struct.Struct("!HH")
_OPT: Final = struct.Struct("!BHHBBHH")  # root name, type, size, extended code, version, flags, length
_RECORD: Final = struct.Struct("!HHIH")
_RESPONSE: Final = 0x8000
_OPCODE: Final = 0x7800
_AUTHORITATIVE: Final = 0x0400
_TRUNCATED: Final = 0x0200
_RECURSION_DESIRED: Final = 0x0100
_DNSSEC_OK: Final = 0x8000
_MOST_LABEL_BYTES: Final = 63
_MOST_NAME_BYTES: Final = 255
_QUESTION_NAME: Final = b"\xc0\x0c"  # a pointer to the question's name (RFC 1035 §4.1.4)


class Unanswerable(Exception):
    """A message that gets no response."""


class Malformed(Exception):
    """A message that is refused before its question is known."""

    def __init__(self, response: bytes, outcome: str) -> None:
        super().__init__(outcome)
        self.response = response
        self.outcome = outcome


class Edns(NamedTuple):
    """What the question's OPT record states."""

    version: int
    flags: int


class Question(NamedTuple):
    """A question; `labels` are in lower case, the leftmost first; `text` is the question section as received."""

    id: int
    flags: int
    labels: tuple[bytes, ...]
    kind: int
    of_class: int
    text: bytes
    edns: Edns | None


class Answer(NamedTuple):
    """What to respond: the code, and records as `record` makes them."""

    code: int
    answers: Sequence[bytes] = ()
    authorities: Sequence[bytes] = ()


def read_question(message: bytes) -> Question:
    """Read a question.

    Raises: `Unanswerable`; `Malformed` with the response to send.
    """
    if len(message) < _HEADER.size:
        raise Unanswerable
    number, flags, questions, answers, authorities, additional = _HEADER.unpack_from(message)
    if flags & _RESPONSE:
        raise Unanswerable
    if flags & _OPCODE:
        raise Malformed(_bare_header(number, flags, NOTIMP), "not implemented")
    try:
        if len(message) > MOST_QUESTION_BYTES or (questions, answers, authorities) != (1, 0, 0) or additional > 1:
            raise ValueError
        labels, end = _read_name(message, _HEADER.size)
        kind, of_class = _KIND_AND_CLASS.unpack_from(message, end)
        end += _KIND_AND_CLASS.size
        edns = _read_opt(message, end) if additional else None
        if not additional and len(message) != end:
            raise ValueError
    except (ValueError, struct.error):
        raise Malformed(_bare_header(number, flags, FORMERR), "malformed") from None
    return Question(number, flags, labels, kind, of_class, message[_HEADER.size : end], edns)


def write_response(question: Question, answer: Answer, *, most_bytes: int) -> bytes:
    """Write the response; one that would be longer than `most_bytes` has no records and the flag TC."""
    records = b"".join((*answer.answers, *answer.authorities))
    opt = b"" if question.edns is None else _write_opt(question.edns, answer.code)
    counts = (len(answer.answers), len(answer.authorities))
    flags = _RESPONSE | _AUTHORITATIVE | question.flags & _RECURSION_DESIRED | answer.code & 0xF
    if answer.code in (REFUSED, BADVERS):
        flags &= ~_AUTHORITATIVE
    if _HEADER.size + len(question.text) + len(records) + len(opt) > most_bytes:
        flags, records, counts = flags | _TRUNCATED, b"", (0, 0)
    return _HEADER.pack(question.id, flags, 1, *counts, bool(opt)) + question.text + records + opt


def write_truncated(question: Question) -> bytes:
    """Write a response without records that has the resolver ask over TCP."""
    flags = _RESPONSE | _TRUNCATED | question.flags & _RECURSION_DESIRED
    opt = b"" if question.edns is None else _write_opt(question.edns, NOERROR)
    return _HEADER.pack(question.id, flags, 1, 0, 0, bool(opt)) + question.text + opt


def record(kind: int, ttl: int, data: bytes, name: bytes = _QUESTION_NAME) -> bytes:
    """Make a record; without `name` it is the question's."""
    return name + _RECORD.pack(kind, IN, ttl, len(data)) + data


def write_name(labels: Sequence[bytes]) -> bytes:
    """Write a name in the form of messages, uncompressed."""
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def write_text(text: str) -> bytes:
    """Write a TXT record's data: one character string of at most 255 bytes."""
    content = text.encode("ascii")
    return bytes([len(content)]) + content


def _read_name(message: bytes, start: int) -> tuple[tuple[bytes, ...], int]:
    """Return the name's labels and where it ends.

    Raises: ValueError.
    """
    labels: list[bytes] = []
    at = start
    while at < len(message):
        length = message[at]
        at += 1
        if not length:
            return tuple(labels), at
        if length > _MOST_LABEL_BYTES or at + length - start >= _MOST_NAME_BYTES:
            break
        labels.append(message[at : at + length].lower())
        at += length
    raise ValueError("the name does not end")


def _read_opt(message: bytes, start: int) -> Edns:
    """Read the OPT record that ends the message; its options are passed over.

    Raises: ValueError, struct.error.
    """
    root, kind, _size, _code, version, flags, length = _OPT.unpack_from(message, start)
    if root or kind != OPT or start + _OPT.size + length != len(message):
        raise ValueError("not an OPT record")
    return Edns(version, flags)


def _write_opt(edns: Edns, code: int) -> bytes:
    return _OPT.pack(0, OPT, MOST_UDP_BYTES, code >> 4, 0, edns.flags & _DNSSEC_OK, 0)


def _bare_header(number: int, flags: int, code: int) -> bytes:
    """Return a response without a question: it is never longer than what came."""
    return _HEADER.pack(number, _RESPONSE | flags & (_OPCODE | _RECURSION_DESIRED) | code, 0, 0, 0, 0)
