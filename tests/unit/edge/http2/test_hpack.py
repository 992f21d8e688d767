"""HPACK (RFC 7541): each rule by its section."""

from __future__ import annotations

import pytest
from hpack import HPACKDecodingError
from hpack.huffman_table import decode_huffman as decode_by_table
from hpack.table import HeaderTable

from edge.http2.errors import ConnectionFailed, ErrorCode
from edge.http2.hpack import HeaderDecoder, integer, string
from edge.http2.huffman import CODES
from edge.http2.huffman import decode as decode_huffman
from edge.http2.huffman import encode as encode_huffman
from edge.http2.literals import KEPT_OF, KnownLiterals
from edge.http2.static_table import STATIC_FIELDS
from tests.unit.edge.http2.decoding import decode, fails

_EXAMPLES = {
    "C.3": (
        (
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        )
    ),
    "C.4": (
        "828684418cf1e3c2e5f23a6ba0ab90f4ff",
        "828684be5886a8eb10649cbf",
        "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
    ),
}


def test_rfc7541_a_static_table_is_that_of_another_implementation() -> None:
    assert tuple(STATIC_FIELDS) == tuple(HeaderTable.STATIC_TABLE)


def test_rfc7541_2_3_2_first_dynamic_entry_is_the_newest() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x40\x01a\x01b" + b"\x40\x01c\x01d")
    assert decode(decoder, b"\xbe\xbf") == [(b"c", b"d"), (b"a", b"b")]


@pytest.mark.parametrize("block", [b"\xbe", b"\xff\x80\x01", b"\x7e\x01a", b"\x0f\x2f\x01a", b"\xff\x01"])
def test_rfc7541_2_3_3_index_beyond_both_tables_is_a_decoding_error(block: bytes) -> None:
    assert fails(block) is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize("size", [0, 30, 100, 4096])
def test_rfc7541_4_2_update_within_the_limit_is_taken(size: int) -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    assert decode(decoder, integer(size, 5, 0x20) + b"\x82") == [(b":method", b"GET")]


def test_rfc7541_4_2_update_above_the_limit_is_a_decoding_error() -> None:
    assert fails(integer(4097, 5, 0x20)) is ErrorCode.COMPRESSION_ERROR


def test_rfc7541_4_2_update_behind_a_field_is_a_decoding_error() -> None:
    assert fails(b"\x82\x20") is ErrorCode.COMPRESSION_ERROR


def test_rfc7541_4_2_two_updates_at_the_start_are_taken_and_more_are_not() -> None:
    assert decode(HeaderDecoder(256, KnownLiterals()), b"\x20" + integer(4096, 5, 0x20) + b"\x82") == [
        (b":method", b"GET")
    ]
    assert fails(b"\x20\x20\x20\x82") is ErrorCode.COMPRESSION_ERROR


def test_rfc7541_4_3_smaller_size_evicts() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x40\x01a\x01b" + b"\x40\x01c\x01d")
    decoder.decode(integer(34, 5, 0x20) + b"\x82")
    assert decoder.dynamic_table == [(b"c", b"d")]
    decoder.decode(b"\x20\x82")
    assert decoder.dynamic_table == []


def test_rfc7541_4_4_larger_entry_than_the_table_empties_it_and_is_no_error() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x40\x01a\x01b")
    assert decode(decoder, b"\x40\x01x" + string(b"y" * 5000)) == [(b"x", b"y" * 5000)]
    assert decoder.dynamic_table == []
    decoder.decode(b"\x40\x01a\x01b")
    assert decoder.dynamic_table == [(b"a", b"b")]


def test_rfc7541_4_4_name_of_the_evicted_entry_may_be_referred_to() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x40" + string(b"n" * 2000) + string(b"v" * 2000))
    assert decode(decoder, b"\x7e" + string(b"w" * 2000)) == [(b"n" * 2000, b"w" * 2000)]
    assert decoder.dynamic_table == [(b"n" * 2000, b"w" * 2000)]


def test_rfc7541_4_1_size_of_an_entry_is_its_octets_and_32() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    for number in range(200):
        decoder.decode(b"\x40\x03%03d\x05value" % number)
    assert len(decoder.dynamic_table) == 4096 // (3 + 5 + 32)


@pytest.mark.parametrize(
    ("value", "prefix", "octets"), [(10, 5, b"\x0a"), (1337, 5, b"\x1f\x9a\x0a"), (42, 8, b"\x2a")]
)
def test_rfc7541_5_1_integers(value: int, prefix: int, octets: bytes) -> None:
    assert integer(value, prefix) == octets


def test_rfc7541_5_1_integer_that_is_too_large_is_a_decoding_error() -> None:
    assert fails(b"\xff" + b"\xff" * 8 + b"\x01") is ErrorCode.COMPRESSION_ERROR
    assert fails(b"\xff" + b"\x80" * 400) is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize(
    "block", [b"\xff", b"\x40", b"\x40\x01", b"\x40\x01a", b"\x40\x01a\x05b", b"\x40\x7f", b"\x3f"]
)
def test_rfc7541_5_truncated_block_is_a_decoding_error(block: bytes) -> None:
    assert fails(block) is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize(
    "text",
    [
        b"\xff",  # a padding of a whole octet
        encode_huffman(b"a") + b"\xff",
        b"\x18",  # "a", padded with zeros
        b"\xff\xff\xff\xff",  # the end's code
        b"\xff\xff\xff\xfa",
    ],
)
@pytest.mark.parametrize("before", [b"", b"a" * 40], ids=["short", "long"])
def test_rfc7541_5_2_padding_and_end_of_string_are_decoding_errors(text: bytes, before: bytes) -> None:
    text = encode_huffman(before) + text
    with pytest.raises(ConnectionFailed):
        decode_huffman(text)
    assert fails(b"\x40\x01a" + integer(len(text), 7, 0x80) + text) is ErrorCode.COMPRESSION_ERROR


def test_rfc7541_5_2_every_octet_has_a_code() -> None:
    octets = bytes(range(256))
    assert decode_huffman(encode_huffman(octets)) == octets
    assert encode_huffman(b"www.example.com") == bytes.fromhex("f1e3c2e5f23a6ba0ab90f4ff")


def test_strings_do_not_depend_on_those_before_wherever_these_end() -> None:
    for end in _ways_to_inner_nodes():
        bits = "00011" * 16 + end  # "a"
        for code in (bits[len(bits) % 8 :], bits[len(bits) % 8 :] + "1" * 8):
            data = int(code, 2).to_bytes(len(code) // 8, "big")
            assert decoded(data) == decoded_by_octet(data)
            assert decoded(encode_huffman(b"/articles/2024/a-title")) == b"/articles/2024/a-title"


def _ways_to_inner_nodes() -> list[str]:
    """Return the bits that lead from the root of the code's tree to where no code ends."""
    codes = [f"{code:0{bits}b}" for code, bits in CODES]
    return sorted({code[:at] for code in codes for at in range(len(code))})


def decoded(code: bytes) -> bytes | None:
    try:
        return decode_huffman(code)
    except ConnectionFailed:
        return None


def decoded_by_octet(data: bytes) -> bytes | None:
    """What other implementations make of it."""
    try:
        return decode_by_table(data)
    except HPACKDecodingError:
        return None


def test_rfc7541_6_2_3_literal_that_is_never_indexed_is_not_kept() -> None:
    literals = KnownLiterals()
    for _ in range(KEPT_OF):  # each literal is the one that would be kept, once
        HeaderDecoder(256, literals).decode(b"\x14\x02/a" + b"\x0f\x08" + string(b"s" * 126) + b"\x04\x01/")
    assert list(literals._fields) == [b"\x04\x01/"]


def test_rfc7541_6_1_index_0_is_a_decoding_error() -> None:
    assert fails(b"\x80") is ErrorCode.COMPRESSION_ERROR


def test_rfc7541_6_2_only_incremental_indexing_changes_the_table() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    assert decode(decoder, b"\x00\x01a\x01b" + b"\x10\x01c\x01d" + b"\x40\x01e\x01f") == [
        (b"a", b"b"),
        (b"c", b"d"),
        (b"e", b"f"),
    ]
    assert decoder.dynamic_table == [(b"e", b"f")]


@pytest.mark.parametrize("example", _EXAMPLES)
def test_rfc7541_c_examples(example: str) -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    lists = [decode(decoder, bytes.fromhex(block)) for block in _EXAMPLES[example]]
    first = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), (b":authority", b"www.example.com")]
    assert lists == [
        first,
        [*first, (b"cache-control", b"no-cache")],
        [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":path", b"/index.html"),
            (b":authority", b"www.example.com"),
            (b"custom-key", b"custom-value"),
        ],
    ]
    assert decoder.dynamic_table == [
        (b"custom-key", b"custom-value"),
        (b"cache-control", b"no-cache"),
        (b":authority", b"www.example.com"),
    ]


def test_empty_block_behind_a_change_of_the_table_has_no_fields() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x82")
    decoder.decode(b"\x40\x01a\x01b")
    assert decoder.decode(b"") == []


def test_block_of_more_fields_than_allowed_breaks_the_connection() -> None:
    assert fails(b"\x82" * 257) is ErrorCode.ENHANCE_YOUR_CALM
