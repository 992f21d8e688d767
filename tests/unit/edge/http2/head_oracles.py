"""Our reading and writing of heads against `hpack`: header blocks, requests' heads, responses' heads."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from random import Random

from hpack import Decoder, Encoder, HeaderTuple, HPACKError, NeverIndexedHeaderTuple

from edge.http import request
from edge.http.error_responses import Rejected
from edge.http.request import RequestHead
from edge.http2.errors import ConnectionFailed, StreamFailed
from edge.http2.fields import Field, make_field
from edge.http2.hpack import HeaderDecoder
from edge.http2.literals import KnownLiterals
from edge.http2.requests import HeadComposer, request_head
from edge.http2.responses import HeadEncoder
from tests.unit.edge.http2.generated_fields import NAMES, damage, some_fields, text


def judge_blocks(seed: int) -> None:
    """Conversations of blocks, of which some are damaged: fields, tables and errors must be those of `hpack`.

    Our decoders share their literals, and fields come again in the second conversation.
    """
    rng, literals = Random(seed), KnownLiterals()
    sent: list[HeaderTuple] = []
    for _ in range(2):
        _judge_conversation_of_blocks(rng, literals, sent)


def _judge_conversation_of_blocks(rng: Random, literals: KnownLiterals, sent: list[HeaderTuple]) -> None:
    encoder, oracle, ours = Encoder(), Decoder(max_header_list_size=1 << 24), HeaderDecoder(256, literals)
    fields: list[HeaderTuple] = []
    for _ in range(rng.randrange(1, 8)):
        if rng.random() < 0.1:
            encoder.header_table_size = rng.choice((0, 50, 300, 4096))
        if fields and rng.random() < 0.5:  # the same again, but for a value
            at = rng.randrange(len(fields))
            fields[at] = type(fields[at])(fields[at][0], text(rng))
        else:
            fields = [_tuple(rng, name, value) for name, value in some_fields(rng)]
            fields += rng.choices(sent, k=rng.randrange(4)) if sent else []
            sent += fields
        block = bytes(encoder.encode(fields, huffman=rng.random() < 0.7))
        if rng.random() < 0.3:
            block = damage(rng, block)
        if rng.random() < 0.05:
            block = rng.randbytes(rng.randrange(12))
        if not _judge_block(block, oracle, ours):
            return


def judge_alike_blocks(seed: int) -> None:
    """A long conversation of blocks of a few kinds that differ in few values, some of which go into a small table.

    Where one is changed afterwards, so that it refers to other fields or to none, that is seen.
    """
    rng, literals = Random(seed), KnownLiterals()
    encoder, oracle, ours = Encoder(), Decoder(max_header_list_size=1 << 24), HeaderDecoder(256, literals)
    encoder.header_table_size = rng.choice((120, 200, 400, 4096))
    kinds = []
    for _ in range(rng.choice((1, 1, 2, 5))):
        names = [rng.choice(NAMES) for _ in range(rng.randrange(1, 9))]
        fields = [HeaderTuple(name, text(rng)) for name in names]
        fields.insert(rng.choice((0, 0, 0, 1)), HeaderTuple(b":path", b"/"))
        others = rng.sample(range(len(fields)), min(len(fields), rng.randrange(1, 4)))
        kinds.append((fields, [(at, rng.random() < 0.5) for at in others]))
    changes = rng.choice((0.0, 0.1, 1.0))
    few = [text(rng) for _ in range(3)]
    for number in range(rng.randrange(20, 120)):
        fields, varying = rng.choice(kinds)
        path_at = next(at for at, (name, _) in enumerate(fields) if name == b":path")
        for at, is_added in varying if rng.random() < changes else [(path_at, False)]:
            make = HeaderTuple if is_added else NeverIndexedHeaderTuple
            fields[at] = make(fields[at][0], rng.choice([*few, text(rng), b"%d" % number, text(rng, 300)]))
        block = bytes(encoder.encode(fields, huffman=rng.random() < 0.8))
        if rng.random() < 0.02:
            block = damage(rng, block)
        if block and rng.random() < 0.02:  # one index higher or lower
            at = rng.randrange(len(block))
            block = block[:at] + bytes((block[at] + rng.choice((-1, 1)) & 0xFF,)) + block[at + 1 :]
        if not _judge_block(block, oracle, ours):
            return


def _tuple(rng: Random, name: bytes, value: bytes) -> HeaderTuple:
    return (NeverIndexedHeaderTuple if rng.random() < 0.2 else HeaderTuple)(name, value)


def _judge_block(block: bytes, oracle: Decoder, ours: HeaderDecoder) -> bool:
    """Return whether the conversation can go on."""
    try:
        expected = [(bytes(name), bytes(value)) for name, value in oracle.decode(block, raw=True)]
    except (HPACKError, IndexError):  # its table of integers is left unguarded
        expected = None
    try:
        recalled = ours.recall(block) if ours.similar else None
        got = [(name, value) for _, _, name, value in ours.decode(block)]
    except ConnectionFailed:
        assert expected is None or _is_stricter(block), f"refused {block!r}, which is {expected}"
        return False
    assert expected is not None, f"accepted {block!r}"
    assert got == expected, block
    if recalled is not None:
        like, path = recalled
        assert len(like) == len(got)
        others = [(before, now) for before, now in zip(like, got, strict=True) if before != now]
        assert all(before[0] == b":path" and now == (b":path", path) for before, now in others), block
        assert len(others) <= 1
        assert (b":path", path) in got
    if ours.surroundings:
        ours.keep(got)
    assert ours.dynamic_table == [(bytes(name), bytes(value)) for name, value in oracle.header_table.dynamic_entries]
    return True


def _is_stricter(block: bytes) -> bool:
    """What `hpack` lets pass: integers of any length, and any number of updates of the size."""
    return b"\xff" in block or b"\x7f" in block or b"\x3f" in block or b"\x80" in block or block[:1] >= b"\x20"


_ODD_FIELDS = [
    *((b":path", value) for value in (b"*", b"x", b"/b")),
    *((b":method", value) for value in (b"OPTIONS", b"CONNECT")),
    *((b"priority", value) for value in (b"u=1", b"i")),
    *((b"te", value) for value in (b"trailers", b"x")),
    (b":authority", b"b.example"),
    (b"host", b"a.example"),
    (b"cookie", b"a=1"),
    (b"x-a", b" "),
    (b"content-length", b"0"),
]


class VaryingHeads:
    """What `vary` says of a connection's requests, beside what is read in their heads."""

    def __init__(self) -> None:
        self._composer = HeadComposer()
        self._last: RequestHead | None = None  # as the edge remembers it

    def judge(self, fields: list[Field], expected: tuple[bytes, bytes] | str, is_complete: bool) -> None:
        read = None
        if isinstance(expected, tuple):
            with contextlib.suppress(Rejected):
                read = request.parse(expected[0], request.HeadLimits())
        varied = self._composer.vary(fields) if is_complete and self._last is not None else None
        if varied is None or self._last is None:
            with contextlib.suppress(StreamFailed):
                self._composer.compose(fields, is_complete=is_complete)
        else:
            path, kept, head_bytes, priority = varied
            assert read is not None
            assert (path, kept) == (read.target, read.kept)
            assert (read.method, read.fields) == (self._last.method, self._last.fields)
            assert (head_bytes, priority) == (len(expected[0]), expected[1])
        self._last = read


def judge_request_head(seed: int) -> None:
    """What a composer makes of each of a connection's requests does not depend on those before."""
    rng = Random(seed)
    composer, varying = HeadComposer(), VaryingHeads()
    pseudo = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a.example"), (b":path", b"/")]
    rng.shuffle(pseudo)
    crumbs = [(b"cookie", text(rng)) for _ in range(rng.randrange(4))]
    fields = [*pseudo, *some_fields(rng), *crumbs, *some_fields(rng)]
    for _ in range(8):
        changed, at = list(fields), rng.randrange(len(fields))
        kind = rng.random()
        if kind < 0.4:
            changed[changed.index(next(field for field in changed if field[0] == b":path"))] = (
                b":path",
                b"/" + text(rng),
            )
        elif kind < 0.6:
            changed[at] = (changed[at][0], text(rng) + rng.choice((b"", b"", b"", b"\x01", b"\x7f")))
        elif kind < 0.7:
            changed.insert(at, rng.choice(_ODD_FIELDS))
        elif kind < 0.8:
            changed[at] = rng.choice(_ODD_FIELDS)
        elif kind < 0.85:
            del changed[at]
        is_complete = rng.random() < 0.9
        judged = [make_field(name, value) for name, value in changed]
        expected, got = (_head_or_error(make, judged, is_complete) for make in (request_head, composer.compose))
        assert got == expected, changed
        varying.judge(judged, expected, is_complete)
        if any(field[0] == b":path" for field in changed) and rng.random() < 0.5:
            fields = changed


def _head_or_error(
    make: Callable[..., tuple[bytes, bytes]], fields: list[Field], is_complete: bool
) -> tuple[bytes, bytes] | str:
    try:
        return make(fields, is_complete=is_complete)
    except StreamFailed as error:
        return error.reason


def judge_response_head(seed: int) -> None:
    """A response's head is the same to `hpack`, whatever was encoded before it; whole, or by its varying values."""
    rng = Random(seed)
    encoder, decoder = HeadEncoder(), Decoder()
    status, names = rng.choice((b"200", b"404", b"299")), [name for name, _ in some_fields(rng)]
    varies = [rng.random() < 0.5 for _ in names]
    constants = [text(rng) for _ in names]
    fields: list[tuple[bytes, bytes]] = []
    for number in range(8):
        if number % 2:  # values of the same lengths
            fields = [(n, value[::-1] if v else value) for (n, value), v in zip(fields, varies, strict=True)]
        else:
            fields = [(n, text(rng, 200) if v else c) for n, v, c in zip(names, varies, constants, strict=True)]
        lines = [
            b"\r\n%b: %b" % (name.title(), b"\0" if v else value)
            for (name, value), v in zip(fields, varies, strict=True)
        ]
        form = b"HTTP/1.1 %b Some%b\r\n\r\n" % (status, b"".join(lines))
        values = [
            b" " * rng.randrange(2) + value + b"\t" * rng.randrange(2)
            for (_, value), v in zip(fields, varies, strict=True)
            if v
        ]
        gapped = form.replace(b"%", b"%%").replace(b"\0", b"%b")
        for block in (encoder.fill(gapped, tuple(values)), encoder.head(gapped % tuple(values))):
            decoded = decoder.decode(block, raw=True)
            assert [(bytes(n), bytes(v)) for n, v in decoded] == [(b":status", status), *fields]
