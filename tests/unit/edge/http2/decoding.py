"""What tests of HPACK share: blocks decoded, and refused."""

from __future__ import annotations

import pytest

from edge.http2.errors import ConnectionFailed, ErrorCode
from edge.http2.hpack import HeaderDecoder
from edge.http2.huffman import encode as encode_huffman
from edge.http2.literals import KnownLiterals


def decode(decoder: HeaderDecoder, block: bytes) -> list[tuple[bytes, bytes]]:
    return [(name, value) for _, _, name, value in decoder.decode(block)]


def fails(block: bytes, *before: bytes) -> ErrorCode:
    decoder = HeaderDecoder(256, KnownLiterals())
    for earlier in before:
        decoder.decode(earlier)
    with pytest.raises(ConnectionFailed) as error:
        decoder.decode(block)
    return error.value.code


def huffman_string(text: bytes) -> bytes:
    code = encode_huffman(text)
    return bytes((0x80 | len(code),)) + code
