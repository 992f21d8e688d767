"""Blocks that are like earlier ones: by their form, by what surrounds their path, by literals that are known."""

from __future__ import annotations

import pytest
from hpack import Decoder, Encoder, HPACKError, NeverIndexedHeaderTuple

from edge.http2 import frames
from edge.http2.errors import ConnectionFailed, ErrorCode
from edge.http2.fields import PATH
from edge.http2.hpack import MAX_SIMILAR, HeaderDecoder, string
from edge.http2.huffman import encode as encode_huffman
from edge.http2.literals import KEPT_OF, KnownLiterals
from tests.unit.edge.http2.decoding import decode, huffman_string
from tests.unit.edge.http2.machine import GET, Machine


def test_cookies_that_go_into_the_table_are_read_by_the_form_of_the_block_before() -> None:
    decoder, encoder = HeaderDecoder(256, KnownLiterals()), Encoder()
    by_form = 0
    for number in range(400):
        fields = [(b":method", b"GET"), (b"user-agent", b"a browser's " * 20), (b"cookie", b"session=%032d" % number)]
        block = encoder.encode(
            [*fields, (b"cookie", b"theme=light"), NeverIndexedHeaderTuple(b"range", b"%d" % number)]
        )
        form = decoder.form
        assert decode(decoder, bytes(block))[:3] == fields
        assert decoder.dynamic_table == list(encoder.header_table.dynamic_entries)
        by_form += form is not None and form.gaps[0].place == 2 and decoder.form in (form, None)
    assert by_form > 340


@pytest.mark.parametrize("index", range(62, 67))
@pytest.mark.parametrize("is_behind", [False, True])
def test_block_of_a_known_form_refers_to_no_field_that_its_own_have_evicted(index: int, is_behind: bool) -> None:
    decoder, oracle = HeaderDecoder(256, KnownLiterals()), Decoder()
    for number in range(8):
        cookie = b"\x60\x04c=%02d" % number
        # a table of three fields, the first of which moves on with each block; then, of one field that stays
        indexed = bytes((0x80 + index + max(0, number - 3) * (number < 6),))
        block = b"\x3f\x64" * (not number) + (cookie + indexed if is_behind else indexed * (number > 2) + cookie)
        try:
            expected = [(bytes(name), bytes(value)) for name, value in oracle.decode(block, raw=True)]
        except HPACKError:
            with pytest.raises(ConnectionFailed):
                decoder.decode(block)
            return
        assert decode(decoder, block) == expected


def test_field_that_evicts_another_one_in_use_ends_the_form_of_its_block() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x3f\x64" + b"\x40\x01x\x01y" + b"\x40\x01a\x01b")
    assert decode(decoder, b"\x60\x04c=00\xbf")[1] == (b"a", b"b")
    assert decoder.form is not None
    with pytest.raises(ConnectionFailed):
        decoder.decode(b"\x60" + string(b"c=" + b"0" * 60) + b"\xc0")


@pytest.mark.parametrize("added", [b"\x0f\x11\x03c=1", b"\x60\x03c=1"])
@pytest.mark.parametrize("turns", [b"\x86\x87", b"\x86\x86\x87", b"\x86\x86\x87\x87"])
def test_connection_whose_blocks_take_turns_has_few_of_their_forms_made_until_they_are_alike(
    turns: bytes, added: bytes
) -> None:
    decoder, block = HeaderDecoder(256, KnownLiterals()), b"\x82\x04\x02/a" + added
    forms = set()
    for number in range(400):
        decoder.decode(block + bytes((turns[number % len(turns)],)))
        forms.add(decoder.form)
    assert len(forms) < 80
    for _ in range(20):
        decoder.decode(block)
    assert decoder.form is not None
    assert decoder.form.uses


def test_block_of_many_fields_has_no_form() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    for literals, has_form in ((31, True), (32, False)):
        for number in range(8):
            decoder.decode(b"\x82" + b"\x0f\x01\x01%c" % (number + 97) * literals)
        assert (decoder.form is not None) is has_form


def test_length_of_a_name_is_no_index_of_a_field_that_is_new() -> None:
    decoder, oracle = HeaderDecoder(256, KnownLiterals()), Decoder()
    name = b"ow" + b"a" * 96  # 62 octets of Huffman's code, the first of which is 63: what follows it in the block
    blocks = [b"\x60\x03c=%d%c\x40\x80\x01a" % (number, 0xBF + 2 * number) for number in range(2)]
    blocks += [b"\x60\x03c=2\xc3\x40" + huffman_string(name) + b"\x01a", b"\xbe"]
    for block in (b"\x40\x01x\x01y" * 4, *blocks):
        assert decode(decoder, block) == oracle.decode(block, raw=True)
        assert decoder.dynamic_table == list(oracle.header_table.dynamic_entries)


def test_block_that_differs_in_one_value_has_the_table_that_stands_now() -> None:
    decoder, start = HeaderDecoder(256, KnownLiterals()), b"\x82\x04"
    decoder.decode(b"\x40\x01a\x01b")
    for path in (b"/1", b"/", b"/" + b"2" * 200, b""):
        assert decode(decoder, start + string(path) + b"\xbe") == [(b":method", b"GET"), (b":path", path), (b"a", b"b")]
    decoder.decode(b"\x40\x01c\x01d")
    assert decode(decoder, start + string(b"/3") + b"\xbe")[2] == (b"c", b"d")
    with pytest.raises(ConnectionFailed):
        decoder.decode(start + b"\x05/4" + b"\xbe")


def test_truncated_long_value_that_alone_differs_breaks_the_connection() -> None:
    machine = Machine().start()
    start = machine.block(GET[:2]) + b"\x04"
    for stream_id, path in ((1, b"/"), (3, b"/" + b"2" * 200), (5, b"/3")):
        machine.frame(frames.HEADERS, 5, stream_id, start + string(path))
        assert machine.made[stream_id].head.startswith(b"GET %b HTTP/1.1" % path)
    machine.frame(frames.HEADERS, 5, 7, start + b"\x7f\x49/short")
    assert machine.connection.failure is not None
    assert machine.connection.failure.code is ErrorCode.COMPRESSION_ERROR


@pytest.mark.parametrize("block", [b"\x82\x04%b", b"\x82\x04%b\x40\x01a\x01b"])
def test_literals_that_clients_repeat_are_kept_and_few_of_those_that_come_once(block: bytes) -> None:
    literals = KnownLiterals()
    decoder = HeaderDecoder(256, literals)
    for number in range(10 * KEPT_OF):
        decoder.decode(block % huffman_string(b"/%d" % number))
    assert 9 <= len(literals._fields) <= 22
    for _ in range(3 * KEPT_OF):
        decoder.decode(block % huffman_string(b"/often"))
        decoder.decode(block % huffman_string(b"/too"))
    assert literals.get(b"\x04" + huffman_string(b"/often")) == (PATH, b"\r\n:path: /often", b":path", b"/often")


def test_literals_of_one_connection_are_those_of_another_where_they_name_no_table_of_its_own() -> None:
    literals = KnownLiterals()
    first, second = HeaderDecoder(256, literals), HeaderDecoder(256, literals)
    for decoder, name in ((first, b"x"), (second, b"y")):
        assert decode(decoder, b"\x40\x01%b\x01v" % name) == [(name, b"v")]
        for _ in range(2):
            assert decode(decoder, b"\x04\x02/a" + b"\x0f\x2f\x01w") == [(b":path", b"/a"), (name, b"w")]
    for truncated in (b"\x04\x02/", b"\x04\x02", b"\x04"):
        with pytest.raises(ConnectionFailed):
            second.decode(truncated)


@pytest.mark.parametrize("broken", [b"\x04\x05/b", b"\x04" + bytes((0x85,)) + encode_huffman(b"/")])
def test_truncated_literal_is_a_decoding_error_however_often_it_comes(broken: bytes) -> None:
    literals = KnownLiterals()
    for _ in range(3 * KEPT_OF):
        decoder = HeaderDecoder(256, literals)
        decoder.decode(b"\x04\x02/a")
        with pytest.raises(ConnectionFailed):
            decoder.decode(broken)
    with pytest.raises(ConnectionFailed):
        HeaderDecoder(256, literals).decode(b"\x82" + broken)


@pytest.mark.parametrize("before", [b"", b"\x82"])
def test_literals_are_forgotten_rather_than_grow(before: bytes) -> None:
    literals, most = KnownLiterals(), 0
    for number in range(10_000):
        if not number % 100:
            decoder = HeaderDecoder(256, literals)
        decoder.decode(before * (number % 2) + b"\x04" + huffman_string(b"/%d" % number))  # like the one before, or not
        most = max(most, len(literals._fields))
    assert most == 1024
    assert 0 < len(literals._fields) < 1024


def test_same_block_means_other_fields_after_the_table_changed() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x40\x01a\x01b")
    assert decode(decoder, b"\xbe") == decode(decoder, b"\xbe") == [(b"a", b"b")]
    decoder.decode(b"\x40\x01c\x01d")
    assert decode(decoder, b"\xbe") == [(b"c", b"d")]
    assert decode(decoder, b"\x20\xbe\xbe"[:1] + b"\x82") == [(b":method", b"GET")]
    with pytest.raises(ConnectionFailed):
        decoder.decode(b"\xbe")


def recalled(decoder: HeaderDecoder, block: bytes) -> tuple[object, bytes] | None:
    """What is known of the block; nothing else is read."""
    table = decoder.dynamic_table
    found = decoder.recall(block) if decoder.similar else None
    assert decoder.dynamic_table == table
    return found


def with_path(path: bytes, *, start: bytes = b"\x82\x04", end: bytes = b"\xbe") -> bytes:
    return start + string(path) + end


def decoder_that_keeps(*blocks: bytes) -> HeaderDecoder:
    """With two fields in its table, and each block kept by its number."""
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x40\x01a\x01b\x40\x01c\x01d")
    for number, block in enumerate(blocks):
        decoder.decode(block)
        assert decoder.surroundings
        decoder.keep(number)
    return decoder


def test_blocks_are_known_by_what_surrounds_their_path() -> None:
    ends = [b"\xbe", b"\xbf", b"\xbe\xbf", b"", b"\x90"]
    decoder = decoder_that_keeps(*(with_path(b"/", end=end) for end in ends))
    for number, end in enumerate(ends):
        for path in (b"/a", b"", b"/" + b"b" * 125):
            assert recalled(decoder, with_path(path, end=end)) == (number, path)
        assert recalled(decoder, b"\x82\x04" + huffman_string(b"/c") + end) == (number, b"/c")
    assert recalled(decoder, with_path(b"/", end=b"\xbf\xbe")) is None
    assert recalled(decoder, with_path(b"/", start=b"\x83\x04")) is None
    assert recalled(decoder, with_path(b"/", start=b"\x82\x14")) is None, "a path that is never indexed"


@pytest.mark.parametrize(
    "change", [b"\x40\x01e\x01f", b"\x3f\x00", b"\x3f\x00\x3f\xe1\x1f", b"\x60\x01g", b"\x82\x44\x01/"], ids=repr
)
def test_no_block_is_known_once_the_table_has_changed(change: bytes) -> None:
    decoder = decoder_that_keeps(with_path(b"/"))
    assert recalled(decoder, with_path(b"/a")) == (0, b"/a")
    decoder.decode(change)
    assert recalled(decoder, with_path(b"/a")) is None


def test_block_whose_path_goes_into_the_table_is_like_no_later_one() -> None:
    decoder = HeaderDecoder(256, KnownLiterals())
    decoder.decode(b"\x82\x44\x01/")
    assert not decoder.surroundings


@pytest.mark.parametrize("path_bytes", [127, 128, 140])
def test_octets_of_a_long_path_are_not_taken_for_what_follows_it(path_bytes: int) -> None:
    for tail in range(1, 4):
        end = b"\xbe" * (path_bytes - 126 + tail)  # what stands behind the 127th octet
        decoder = decoder_that_keeps(with_path(b"/", end=end))
        block = with_path(b"/" + b"\xbe" * (path_bytes - 1), end=b"\xbe" * tail)
        assert recalled(decoder, block) is None
        decoder.decode(block)
        assert not decoder.surroundings


@pytest.mark.parametrize(
    "block", [b"", b"\x82", b"\x82\x04", b"\x82\x04\x02/", b"\x82\x04\x7e", b"\x82\x04\x7f", b"\x82\x04\xff"], ids=repr
)
def test_block_that_is_cut_off_is_not_known(block: bytes) -> None:
    decoder = decoder_that_keeps(with_path(b"/"), with_path(b"/", end=b""))
    assert recalled(decoder, block) is None


def test_blocks_whose_paths_begin_elsewhere_are_known_by_themselves() -> None:
    first, second = with_path(b"/"), with_path(b"/", start=b"\x04", end=b"\x82\xbe")
    decoder = decoder_that_keeps(first, second)
    assert recalled(decoder, second) == (1, b"/")
    assert recalled(decoder, first) is None
    assert len(decoder.similar) == 1


def test_path_whose_name_is_spelled_out_is_not_kept_as_another_field() -> None:
    literals = KnownLiterals()
    decoder = HeaderDecoder(256, literals)
    for number in range(2 * KEPT_OF):
        block = b"\x82\x00\x05:path" + string(b"/%d" % number)
        assert decode(decoder, block)[1] == (b":path", b"/%d" % number)
        assert not decoder.surroundings
        assert literals.get(b"h" + string(b"/%d" % number)) is None


def test_few_blocks_are_known_and_none_of_many_fields() -> None:
    decoder = decoder_that_keeps(*(with_path(b"/", end=b"\xbe" * number) for number in range(2 * MAX_SIMILAR)))
    assert 1 <= len(decoder.similar) <= MAX_SIMILAR
    for fields, has_surroundings in ((30, True), (31, False)):
        decoder.decode(with_path(b"/", end=b"\xbe" * fields))
        assert bool(decoder.surroundings) is has_surroundings


def test_what_blocks_were_like_can_be_forgotten() -> None:
    decoder = decoder_that_keeps(with_path(b"/"))
    decoder.forget()
    assert recalled(decoder, with_path(b"/")) is None
    assert decode(decoder, with_path(b"/a")) == [(b":method", b"GET"), (b":path", b"/a"), (b"c", b"d")]
