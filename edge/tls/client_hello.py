"""The peek: reads a ClientHello off the wire without consuming it, before any SSL object exists.

It owns which hellos we take up at all. It must not know certificates, sockets or OpenSSL.

The rules (RFC 8446 §4.1.2, §5.1; RFC 6066 §3)
    - The message may be split over any number of records and segments, but ends with a record.
    - Everything up to its end fits in 16 KB, record headers included.
    - Every length must come out exactly; no extension comes twice.
    - The answer depends on the bytes alone, never on how they were split.
    - Keys are not exchanged in finite fields (RFC 7919). OpenSSL would, and `ssl` cannot forbid it before Python 3.15:
      130 ms of ours for a hello that cost its sender nothing.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import NamedTuple

from edge.tls.failures import Failure

MAX_HELLO_BYTES = 16 * 1024

_HANDSHAKE_RECORD = 22
_CLIENT_HELLO = 1
_RECORD_HEADER_BYTES = 5
_MESSAGE_HEADER_BYTES = 4
_VERSION_AND_RANDOM_BYTES = 2 + 32
_MAJOR_VERSION = 3
_TLS12 = 0x0303
_TLS13 = 0x0304
_read_extension_header = struct.Struct(">HH").unpack_from  # type, length
_EXTENSION_HEADER_BYTES = 4
_read_start = struct.Struct(">BBxHB").unpack_from  # of a record: type, version, length; type of the message
_read_word = struct.Struct(">H").unpack_from
_NAME_HEADER = struct.Struct(">HBH")  # length of the list, type, length of its one name
_SERVER_NAME, _SUPPORTED_GROUPS, _ALPN, _SUPPORTED_VERSIONS, _KEY_SHARE = 0, 10, 16, 43, 51
FINITE_FIELDS = range(0x0100, 0x0200)

_HTTP_METHOD = re.compile(rb"[A-Z]{3,8} ")
_LONGEST_METHOD_BYTES = 9
# Host names as the replica knows them; the last label is not all digits, so that no address passes.
_HOST_NAME = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*(?![0-9]+\Z)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)


class ClientHello(NamedTuple):
    """What decides the certificate and the protocol; nothing else of the message is kept."""

    server_name: str | None  # lower case, no trailing dot; None when the client named no host
    alpn: tuple[bytes, ...]
    offers_tls12: bool
    offers_tls13: bool


class _Malformed(Exception):
    """A length or a value that the grammar does not allow."""


class ClientHelloPeek:
    """Reads the connection's first bytes, in any portions, until it answers. One a connection, then dropped."""

    __slots__ = ("_groups", "_message", "_seen_bytes", "_unparsed")

    def __init__(self, groups: frozenset[int]) -> None:
        """Begin. `groups`: the key exchange groups to accept (`edge.tls.groups`)."""
        self._groups = groups
        self._unparsed = b""
        self._message = b""
        self._seen_bytes = 0  # of whole records

    def feed(self, data: bytes) -> ClientHello | Failure | None:
        """Return the hello or why it is refused; None while more bytes are needed. Not to be fed afterwards."""
        if not self._seen_bytes and not self._unparsed and _is_one_record(data):  # by far the most frequent
            return self._judge_whole(data[_RECORD_HEADER_BYTES:])
        # Nothing beyond the limit is looked at, however much a segment brings.
        unparsed = (self._unparsed + data)[: MAX_HELLO_BYTES + _RECORD_HEADER_BYTES]
        while unparsed:
            failure = self._judge_header(unparsed)
            if failure is not None:
                return failure
            end = _RECORD_HEADER_BYTES + int.from_bytes(unparsed[3:5])
            if len(unparsed) < _RECORD_HEADER_BYTES or len(unparsed) < end:
                break
            self._message += unparsed[_RECORD_HEADER_BYTES:end]
            self._seen_bytes += end
            unparsed = unparsed[end:]
            answer = self._judge_message()
            if answer is not None:
                return answer
        self._unparsed = unparsed
        return None

    def _judge_header(self, start: bytes) -> Failure | None:
        """Judge a record header as far as it is there; only the very first bytes can be NOT_TLS."""
        if start[0] != _HANDSHAKE_RECORD:
            return Failure.MALFORMED if self._seen_bytes else _judge_foreign(start)
        if len(start) > 1 and start[1] != _MAJOR_VERSION:
            return Failure.MALFORMED if self._seen_bytes else Failure.NOT_TLS
        if len(start) >= _RECORD_HEADER_BYTES:
            length = int.from_bytes(start[3:5])
            if length == 0:
                return Failure.MALFORMED
            if self._seen_bytes + _RECORD_HEADER_BYTES + length > MAX_HELLO_BYTES:
                return Failure.TOO_LARGE
        return None

    def _judge_message(self) -> ClientHello | Failure | None:
        message = self._message
        if message[0] != _CLIENT_HELLO:
            return Failure.MALFORMED
        if len(message) < _MESSAGE_HEADER_BYTES:
            return None
        end = _MESSAGE_HEADER_BYTES + int.from_bytes(message[1:4])
        if end > MAX_HELLO_BYTES:
            return Failure.TOO_LARGE
        if len(message) < end:
            return None
        return Failure.MALFORMED if len(message) > end else self._judge_whole(message)

    def _judge_whole(self, message: bytes) -> ClientHello | Failure:
        try:
            return _parse(message, self._groups)
        except (_Malformed, IndexError, struct.error):
            return Failure.MALFORMED


def _is_one_record(data: bytes) -> bool:
    """Return whether the data is one record, which holds one whole ClientHello."""
    if not _RECORD_HEADER_BYTES + _MESSAGE_HEADER_BYTES <= len(data) <= MAX_HELLO_BYTES:
        return False
    record, version, length, message = _read_start(data)
    is_whole: bool = length == len(data) - _RECORD_HEADER_BYTES
    is_hello: bool = record == _HANDSHAKE_RECORD and version == _MAJOR_VERSION and message == _CLIENT_HELLO
    return is_whole and is_hello and int.from_bytes(data[6:9]) == length - _MESSAGE_HEADER_BYTES


def _judge_foreign(start: bytes) -> Failure | None:
    """Judge bytes that are no handshake record: perhaps plain HTTP.

    Split-independence: a method's letters are waited for only while the bytes so far could still be one.
    """
    if _HTTP_METHOD.match(start):
        return Failure.PLAIN_HTTP
    if len(start) < _LONGEST_METHOD_BYTES and start.isalpha() and start.isupper():
        return None
    return Failure.NOT_TLS


def read_groups(hello: bytes) -> frozenset[int]:
    """Return the groups that a hello of our own library offers; it lies in one record."""
    _, extensions = _split(hello[_RECORD_HEADER_BYTES:])
    return frozenset(_parse_groups(extensions[_SUPPORTED_GROUPS]))


def _parse(message: bytes, groups: frozenset[int]) -> ClientHello | Failure:
    """Return what decides.

    Raises: `_Malformed`; IndexError and `struct.error` for what ends too early.
    """
    return _summarise(*_split(message), groups)


def _split(message: bytes) -> tuple[int, dict[int, bytes]]:
    """Return the version of old clients, and the extensions by type.

    Raises: as `_parse`.
    """
    version_at = _MESSAGE_HEADER_BYTES
    session_at = version_at + _VERSION_AND_RANDOM_BYTES
    ciphers_at = session_at + 1 + message[session_at]
    cipher_bytes = _read_word(message, ciphers_at)[0]
    compressions_at = ciphers_at + 2 + cipher_bytes
    end = compressions_at + 1 + message[compressions_at]
    if message[session_at] > 32 or not cipher_bytes or cipher_bytes % 2 or not message[compressions_at]:
        raise _Malformed
    legacy_version = _read_word(message, version_at)[0]
    if end == len(message):  # RFC 5246 §7.4.1.2: a hello may end here
        return legacy_version, {}
    if end + 2 + _read_word(message, end)[0] != len(message):
        raise _Malformed
    return legacy_version, _extensions(message, end + 2)


def _summarise(
    legacy_version: int, extensions: dict[int, bytes], accepted_groups: frozenset[int]
) -> ClientHello | Failure:
    alpn = _parse_alpn(extensions[_ALPN]) if _ALPN in extensions else ()
    name = _parse_server_name(extensions[_SERVER_NAME]) if _SERVER_NAME in extensions else None
    if _SUPPORTED_VERSIONS in extensions:
        versions = _parse_versions(extensions[_SUPPORTED_VERSIONS])
        offers_tls12, offers_tls13 = _TLS12 in versions, _TLS13 in versions
    else:
        offers_tls12, offers_tls13 = legacy_version >= _TLS12, False
    if not (offers_tls12 or offers_tls13):
        return Failure.OLD_VERSION
    if _SUPPORTED_GROUPS in extensions and not _can_exchange_keys(
        extensions, accepted_groups, offers_tls13=offers_tls13
    ):
        return Failure.NO_GROUP
    server_name = None
    if name is not None:
        server_name = normalise(name)
        if server_name is None:
            return Failure.BAD_NAME
    return ClientHello(server_name, alpn, offers_tls12, offers_tls13)


def _can_exchange_keys(extensions: dict[int, bytes], accepted: frozenset[int], *, offers_tls13: bool) -> bool:
    """Return whether there is a common group, and OpenSSL does not choose a finite field before it.

    OpenSSL takes the first share that it can use, or asks for one: of an accepted group, if the client has any.
    """
    if accepted.isdisjoint(_parse_groups(extensions[_SUPPORTED_GROUPS])):
        return False
    if offers_tls13 and _KEY_SHARE in extensions:
        for group in _shared_groups(extensions[_KEY_SHARE]):
            if group in accepted or group in FINITE_FIELDS:
                return group not in FINITE_FIELDS
    return True


def _parse_groups(body: bytes) -> tuple[int, ...]:
    return _words(_only_vector(body, 2))


def _shared_groups(body: bytes) -> Iterator[int]:
    """Yield the groups of the shares, in the client's order (RFC 8446 §4.2.8). There may be none."""
    end = len(body)
    if _read_word(body, 0)[0] != end - 2:
        raise _Malformed
    at = 2
    while at < end:
        group, length = _read_extension_header(body, at)  # the same form
        at += _EXTENSION_HEADER_BYTES + length
        if at > end:
            raise _Malformed
        yield group


def normalise(name: bytes) -> str | None:
    """Return a host name in lower case without trailing dot; None for anything that is no host name (or an address)."""
    try:
        text = name.decode("ascii").lower().removesuffix(".")
    except UnicodeDecodeError:
        return None
    return text if _HOST_NAME.fullmatch(text) else None


def _vector(data: bytes, at: int, prefix_bytes: int) -> tuple[bytes, int]:
    """Return a length-prefixed vector (RFC 8446 §3.4) at `at`, and where it ends."""
    start = at + prefix_bytes
    end = start + int.from_bytes(data[at:start])
    if start > len(data) or end > len(data):
        raise _Malformed
    return data[start:end], end


def _only_vector(data: bytes, prefix_bytes: int) -> bytes:
    length = len(data) - prefix_bytes
    if length <= 0 or int.from_bytes(data[:prefix_bytes]) != length:
        raise _Malformed
    return data[prefix_bytes:]


def _words(body: bytes) -> tuple[int, ...]:
    """Return a list of numbers of two bytes each.

    Raises: `struct.error`, where one lacks a byte.
    """
    return struct.unpack(f">{-(-len(body) // 2)}H", body)


def _extensions(message: bytes, at: int) -> dict[int, bytes]:
    """Return the extensions from `at` to the message's end, by type.

    Written out flat: a browser sends some fifteen of them with every connection.

    Raises: `_Malformed` and `struct.error`.
    """
    extensions: dict[int, bytes] = {}
    read, size, count = _read_extension_header, len(message), 0
    while at < size:
        kind, length = read(message, at)
        at += _EXTENSION_HEADER_BYTES
        extensions[kind] = message[at : (at := at + length)]
        count += 1
    if at != size or count != len(extensions):  # the last is too short, or two are of one type
        raise _Malformed
    return extensions


def _parse_server_name(body: bytes) -> bytes:
    """Return the host name of a list (RFC 6066 §3): never two of one type; host_name (0) is the only type."""
    if len(body) <= _NAME_HEADER.size:
        raise _Malformed
    list_bytes, kind, name_bytes = _NAME_HEADER.unpack_from(body)
    if kind != 0 or list_bytes != len(body) - 2 or name_bytes != len(body) - _NAME_HEADER.size:
        raise _Malformed
    return body[_NAME_HEADER.size :]


def _parse_alpn(body: bytes) -> tuple[bytes, ...]:
    names = _only_vector(body, 2)
    protocols: list[bytes] = []
    at = 0
    while at < len(names):
        protocol, at = _vector(names, at, 1)
        if not protocol:
            raise _Malformed
        protocols.append(protocol)
    return tuple(protocols)


def _parse_versions(body: bytes) -> tuple[int, ...]:
    return _words(_only_vector(body, 1))
