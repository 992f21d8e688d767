"""The Huffman code of HPACK (RFC 7541 §5.2, Appendix B).

Appendix B's code is canonical: the lengths of the codes say all of it. So is DEFLATE's (RFC 1951 §3.2.2), whose codes
have 15 bits at most: those of 15 bits and fewer leave one code of 15 bits free in Appendix B, all ones, with which all
longer ones begin. With the end of the block for that, zlib decodes what has none of the longer codes in it, at a third
of the cost of a long string (`_inflate`).

Short strings and the others are decoded by octet: one row of 256 entries for each inner node of the code's tree, each
with the row that follows and the symbols that the octet completes. All is made once, when the module is imported; the
rows from steps of four bits.
"""

from __future__ import annotations

import zlib
from typing import Any, Final

from edge.http2.errors import ConnectionFailed, ErrorCode

_EOS: Final = 256

# Bits of the code of each octet, and of the end of the string (Appendix B): 5 bits are `e`, 30 are `~`.
_LENGTHS: Final = bytes(
    bits - 0x60
    for bits in (
        b"mw|||||||x~||~||||||||~|||||||||fjjlmfhkjjhkhfffeeefffffffghoflj"
        b"mfgggggggggggggggggggggghghmsmnfoefefefffeggfffefgfeefgggggoknm|"
        b"tvttvvvwvwwwwwxwxxvwxwwwwuvwvwwxvutvvwwuwvvxuvwwuuvuwvwwtvvvwvvw"
        b"zztsvwvyzzz{{zxysuz{{z{xuuzz|{{{txtuvuuwvvyyxxzwz{zz{{{{{|{{{{{z"
        b"~"
    )
)

Row = list[Any]
"""256 entries ``(row that follows, symbols)``, and whether a string may end here."""


def _codes() -> list[tuple[int, int]]:
    """Return the code of each symbol, and its bits: ascending, by length and symbol."""
    codes: list[tuple[int, int]] = [(0, 0)] * 257
    code, bits = 0, 0
    for symbol in sorted(range(257), key=lambda symbol: (_LENGTHS[symbol], symbol)):
        code <<= _LENGTHS[symbol] - bits
        bits = _LENGTHS[symbol]
        codes[symbol] = code, bits
        code += 1
    return codes


CODES: Final = _codes()


def _tree() -> list[list[int]]:
    """Return the inner nodes: two children each, a node's number or, for a symbol, that of its octet below zero."""
    nodes = [[0, 0]]
    for symbol, (code, bits) in enumerate(CODES):
        node = 0
        for at in range(bits - 1, 0, -1):
            bit = code >> at & 1
            if not nodes[node][bit]:
                nodes.append([0, 0])
                nodes[node][bit] = len(nodes) - 1
            node = nodes[node][bit]
        nodes[node][code & 1] = -1 - symbol
    return nodes


def _steps(nodes: list[list[int]], bits: int) -> list[list[tuple[int, bytes]]]:
    """Return where each node leads by each number of `bits` bits, and with what symbols; -1 behind the end's code."""
    table = []
    for first in range(len(nodes)):
        row = []
        for value in range(1 << bits):
            node, symbols = first, b""
            for at in range(bits - 1, -1, -1):
                node = nodes[node][value >> at & 1]
                if node < 0:
                    if node == -1 - _EOS:
                        break
                    symbols += bytes((-1 - node,))
                    node = 0
            row.append((node if node >= 0 else -1, symbols))
        table.append(row)
    return table


def _rows() -> list[Row]:
    """Return the rows, the root's first and that of a broken string last."""
    nodes = _tree()
    halves = _steps(nodes, 4)
    rows: list[Row] = [[] for _ in range(len(nodes) + 1)]
    broken = rows[-1]
    broken += [(broken, b"")] * 256
    known: dict[bytes, bytes] = {}  # each string of symbols once
    for row, half in zip(rows, halves, strict=False):
        for node, symbols in half:
            seconds = halves[node] if node >= 0 else [(-1, b"")] * 16
            for following, others in seconds:
                both = symbols + others
                row.append((rows[following], known.setdefault(both, both)))
    # §5.2: padding is what the end's code begins with, and shorter than an octet.
    node = 0
    for row in rows:
        row.append(False)
    for _ in range(8):
        rows[node][256] = True
        node = nodes[node][1]
    return rows


_ROOT: Final = _rows()[0]


_MAX_DEFLATE_BITS: Final = 15
_SHORT_BYTES: Final = 13  # up to here rows cost less
_MAX_START_BYTES: Final = 32
_MIRRORED: Final = bytes(int(f"{octet:08b}"[::-1], 2) for octet in range(256))  # DEFLATE begins with the lowest bit
_TAIL: Final = b"\xff\x7f"  # 15 ones and a zero, mirrored: ends the block where the string does
_FULL: Final = 0xFF


def _deflate_head() -> bytes:
    """Return the start of a DEFLATE stream, up to the first code of its only block (RFC 1951 §3.2.7)."""
    bits = ""
    lengths = [bits if bits <= _MAX_DEFLATE_BITS else 0 for bits in _LENGTHS[:_EOS]]
    lengths += [_MAX_DEFLATE_BITS, 0]  # the block's end, and no code of a distance
    fields = [(1, 1), (2, 2), (0, 5), (0, 5), (15, 4)]  # last, dynamic; 257 lengths, 1 distance, 19 lengths of lengths
    fields += [(0, 3)] * 3 + [(4, 3)] * 16  # a length is written in four bits
    bits = "".join(f"{value:0{width}b}"[::-1] for value, width in fields)
    bits += "".join(f"{length:04b}" for length in lengths)
    while len(bits) % 8:
        bits = "0100000000" + bits  # an empty block
    return bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))


_inflater: Final = zlib.decompressobj(-9)
_inflater.decompress(_deflate_head())


class Start:
    """What strings have in common that begin alike, decoded: the others are decoded from there on (`decode`).

    Learnt from them, and shortened by each that begins differently.
    """

    __slots__ = ("code", "lead", "rest", "row", "size", "text")

    def __init__(self, first: bytes) -> None:
        self.code = first
        self.lead = slice(0)
        self.rest = slice(0, None)
        self.size = 0  # until there is a second string
        self.row = _ROOT
        self.text = b""

    def shorten(self, data: bytes) -> None:
        """Have in common what the string begins with, too."""
        code = self.code
        common = min(len(code), len(data), _MAX_START_BYTES)
        self.size = size = next((at for at in range(common) if code[at] != data[at]), common)
        self.code, self.lead, self.rest = code[:size], slice(size), slice(size, None)
        self.row = _ROOT
        parts = []
        for octet in self.code:
            self.row, symbols = self.row[octet]
            parts.append(symbols)
        self.text = b"".join(parts)


def decode(data: bytes, start: Start | None = None) -> bytes:
    """Return the string that is coded; `start` learns of it.

    Raises: `ConnectionFailed` where it has the end's code in it, or a padding that §5.2 forbids.
    """
    size = len(data)
    row = _ROOT
    parts = []
    if start is not None:
        if data[start.lead] != start.code:
            start.shorten(data)
        if size - start.size <= _SHORT_BYTES:
            size = 0
            row, data = start.row, data[start.rest]
            parts.append(start.text)
    if size > _SHORT_BYTES and data[-1] != _FULL:  # which might be too much of padding
        inflater = _inflater.copy()
        decoded = inflater.decompress(data.translate(_MIRRORED) + _TAIL)
        if inflater.eof and len(inflater.unused_data) <= 1:  # else a code of more than 15 bits
            return decoded
    for octet in data:
        row, symbols = row[octet]
        parts.append(symbols)
    if not row[256]:
        raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "invalid Huffman code")
    return b"".join(parts)


def encode(data: bytes) -> bytes:
    """Return the code of a string."""
    value, length = 0, 0
    for octet in data:
        code, bits = CODES[octet]
        value = value << bits | code
        length += bits
    padding = -length % 8
    return (value << padding | (1 << padding) - 1).to_bytes((length + padding) // 8, "big")
