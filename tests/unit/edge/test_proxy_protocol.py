"""PROXY headers, read from bytes that may be anything."""

from __future__ import annotations

import socket

import pytest

from edge.transport.proxy_protocol import Malformed, Stated, read

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
TCP4 = socket.inet_aton("192.0.2.7") + socket.inet_aton("10.0.0.1") + b"\xdc\x04\x01\xbb"
TCP6 = socket.inet_pton(socket.AF_INET6, "2001:db8::7") * 2 + b"\xdc\x04\x01\xbb"


def version_2(command: int, family: int, content: bytes) -> bytes:
    return SIGNATURE + bytes([command, family]) + len(content).to_bytes(2) + content


HEADERS = [
    (b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n", ("192.0.2.7", 56324)),
    (b"PROXY TCP6 2001:DB8::7 ::1 0 65535\r\n", ("2001:db8::7", 0)),
    (b"PROXY TCP6 ::ffff:192.0.2.7 ::1 1 2\r\n", ("192.0.2.7", 1)),
    (b"PROXY UNKNOWN\r\n", None),
    (b"PROXY UNKNOWN " + b"f" * 91 + b"\r\n", None),  # 107 bytes, the longest there is
    (version_2(0x21, 0x11, TCP4), ("192.0.2.7", 56324)),
    (version_2(0x21, 0x21, TCP6), ("2001:db8::7", 56324)),
    (version_2(0x21, 0x11, TCP4 + b"\x04\x00\x05abcde"), ("192.0.2.7", 56324)),  # with a TLV
    (version_2(0x21, 0x31, b"\x00" * 216), None),
    (version_2(0x21, 0x00, b""), None),
    (version_2(0x20, 0x00, b""), None),
    (version_2(0x20, 0x11, TCP4), None),
]


@pytest.mark.parametrize(("header", "client"), HEADERS)
def test_a_header_is_read_whole_and_nothing_of_what_follows(header: bytes, client: tuple[str, int] | None) -> None:
    assert read(header + b"GET / HTTP/1.1\r\n") == Stated(client, len(header))
    for size in range(len(header)):
        assert read(header[:size]) is None


@pytest.mark.parametrize(
    "data",
    [b"GET / HTTP/1.1\r\n", b"POST / HTTP/1.1\r\n", b"\x16\x03\x01", b"\r\nGET /", b"proxy TCP4", b"PROXYING / "],
)
def test_what_is_no_header_is_left_alone(data: bytes) -> None:
    assert read(data) == Stated(None, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"PROXY TCP4 192.0.2.7 10.0.0.1 56324\r\n",
        b"PROXY TCP4  192.0.2.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 01 2\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1 65536\r\n",
        b"PROXY TCP4 192.0.2.007 10.0.0.1 1 2\r\n",
        b"PROXY TCP4 2001:db8::7 ::1 1 2\r\n",
        b"PROXY TCP6 192.0.2.7 10.0.0.1 1 2\r\n",
        b"PROXY TCP6 fe80::1%eth0 ::1 1 2\r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1 2 \r\n",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 1 2\n",
        b"PROXY UDP4 192.0.2.7 10.0.0.1 1 2\r\n",
        b"PROXY UNKNOWNS\r\n",
        b"PROXY UNKNOWN " + b"f" * 92 + b"\r\n",
        b"PROXY " + b"x" * 101,
        version_2(0x22, 0x11, TCP4),
        version_2(0x11, 0x11, TCP4),
        version_2(0x21, 0x13, TCP4),
        version_2(0x21, 0x41, TCP4),
        version_2(0x21, 0x11, TCP4[:-1]),
        version_2(0x21, 0x21, TCP4),
    ],
)
def test_what_begins_like_a_header_and_is_none_is_refused(data: bytes) -> None:
    with pytest.raises(Malformed):
        read(data)
