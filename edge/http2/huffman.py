"""The Huffman code of HPACK (RFC 7541 §5.2, Appendix B).

Appendix B's code is canonical: the lengths of its codes define it. So is DEFLATE's (RFC 1951 §3.2.2), whose codes have
15 bits at most. Appendix B leaves one code of 15 bits unused, all ones: the prefix of all longer codes. That code
stands for the end of a DEFLATE block, so zlib can decode strings without longer codes; for long strings that costs a
third (`_Decoder`).

Short strings, and those with longer codes, are decoded by octet: each inner node of the code's tree has a row of 256
entries, each with the row that follows and the symbols that the octet completes. The rows are made once, from steps of
four bits, when the module is imported.
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
_SHORT_BYTES: Final = 9  # up to here rows cost less
_MIRRORED: Final = bytes(int(f"{octet:08b}"[::-1], 2) for octet in range(256))  # DEFLATE begins with the lowest bit
_RESET: Final = 0b0111_1100_0110_0000
_RESET_CODE: Final = _RESET.to_bytes(2, "big").translate(_MIRRORED)
_PADDING_BITS: Final = 8  # less than that


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


def _symbols(bits: str) -> bytes:
    """Return the symbols that bits from the root stand for."""
    nodes, node, symbols = _tree(), 0, b""
    for bit in bits:
        node = nodes[node][int(bit)]
        if node < 0:
            symbols += bytes((-1 - node,))
            node = 0
    return symbols


_ENDS: Final = frozenset(_symbols("1" * padding + f"{_RESET:016b}") for padding in range(_PADDING_BITS))
_ENDS_AT: Final = -3


class _Decoder:
    """Decodes strings, the longer ones as parts of one DEFLATE block that never ends.

    Behind each stands `_RESET`. These bits lead to the root of the code's tree, wherever in it the string ends, so that
    nothing of it is left for the next. What they stand for behind a string that ends at the root, and a padding of
    ones, is one of `_ENDS`; so the string is what was decoded before that.
    """

    __slots__ = ("_first", "_inflater")

    def __init__(self) -> None:
        self._first = zlib.decompressobj(-9)
        self._first.decompress(_deflate_head())
        self._inflater = self._first.copy()

    def decode(self, data: bytes) -> bytes:
        """Return the string that is coded.

        Raises: `ConnectionFailed` where it has the end's code in it, or a padding that §5.2 forbids.
        """
        if len(data) > _SHORT_BYTES:
            inflater = self._inflater
            decoded = inflater.decompress(data.translate(_MIRRORED) + _RESET_CODE)
            if decoded[_ENDS_AT:] in _ENDS and not inflater.eof:
                return decoded[:_ENDS_AT]
            self._inflater = self._first.copy()  # a code of more than 15 bits, or a broken string
        row = _ROOT
        parts = []
        for octet in data:
            row, symbols = row[octet]
            parts.append(symbols)
        if not row[256]:
            raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "invalid Huffman code")
        return b"".join(parts)


decode: Final = _Decoder().decode


def encode(data: bytes) -> bytes:
    """Return the code of a string."""
    value, length = 0, 0
    for octet in data:
        code, bits = CODES[octet]
        value = value << bits | code
        length += bits
    padding = -length % 8
    return (value << padding | (1 << padding) - 1).to_bytes((length + padding) // 8, "big")
