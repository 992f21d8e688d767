from __future__ import annotations

import itertools
import ssl
from collections.abc import Callable
from random import Random
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edge.tls.client_hello import MAX_HELLO_BYTES, ClientHello, ClientHelloPeek, normalise
from edge.tls.failures import Failure
from edge.tls.groups import accepted_groups
from tests.tls_parts import client_hello, in_records

T = TypeVar("T")
HELLO = client_hello("a.example", alpn=("h2", "http/1.1"))
MESSAGE = HELLO[5:]
CURVES = frozenset({23, 24, 25, 29, 30})


def peek(data: bytes, cuts: list[int] | None = None, groups: frozenset[int] = CURVES) -> ClientHello | Failure | None:
    """Feed `data` cut at these places; stop at the first answer."""
    reader = ClientHelloPeek(groups)
    places = [0, *sorted(cuts or []), len(data)]
    for start, end in itertools.pairwise(places):
        answer = reader.feed(data[start:end])
        if answer is not None:
            return answer
    return None


def message_of(extensions: bytes, *, version: bytes = b"\x03\x03", ciphers: bytes = b"\x13\x01") -> bytes:
    body = version + bytes(32) + b"\0" + len(ciphers).to_bytes(2) + ciphers + b"\x01\0"
    body += len(extensions).to_bytes(2) + extensions
    return b"\x01" + len(body).to_bytes(3) + body


def extension(kind: int, body: bytes) -> bytes:
    return kind.to_bytes(2) + len(body).to_bytes(2) + body


def server_name(name: bytes) -> bytes:
    entry = b"\0" + len(name).to_bytes(2) + name
    return extension(0, len(entry).to_bytes(2) + entry)


def test_reads_what_the_real_client_says() -> None:
    assert peek(HELLO) == ClientHello("a.example", (b"h2", b"http/1.1"), offers_tls12=True, offers_tls13=True)


def test_a_client_without_name_and_with_tls12_only() -> None:
    hello = client_hello(None, maximum_version=ssl.TLSVersion.TLSv1_2)
    assert peek(hello) == ClientHello(None, (), offers_tls12=True, offers_tls13=False)


def test_every_single_cut_gives_the_same_answer() -> None:
    whole = peek(HELLO)
    assert all(peek(HELLO, [cut]) == whole for cut in range(len(HELLO)))
    assert peek(HELLO, list(range(len(HELLO)))) == whole


@given(st.lists(st.integers(1, len(MESSAGE)), max_size=8), st.lists(st.integers(0, len(HELLO)), max_size=12))
def test_any_split_over_records_and_segments_gives_the_same_answer(sizes: list[int], cuts: list[int]) -> None:
    assert peek(in_records(MESSAGE, *sizes), cuts) == peek(HELLO)


@given(
    st.lists(st.tuples(st.integers(0, len(HELLO) - 1), st.integers(0, 255)), min_size=1, max_size=6),
    st.integers(0, len(HELLO)),
    st.lists(st.integers(0, len(HELLO)), max_size=6),
)
@settings(max_examples=400)
def test_mutated_hellos_get_one_answer_however_split(
    changes: list[tuple[int, int]], length: int, cuts: list[int]
) -> None:
    mutated = bytearray(HELLO)
    for place, value in changes:
        mutated[place] = value
    for data in (bytes(mutated), bytes(mutated[:length])):
        assert peek(data, cuts) == peek(data) == peek(data, list(range(len(data))))


class Plain:
    """Reads a message of TLS octet by octet, as RFC 8446 §3 writes it down."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def take(self, count: int) -> bytes:
        if count > len(self._data):
            raise ValueError
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count))

    def vector(self, prefix_bytes: int) -> Plain:
        return Plain(self.take(self.number(prefix_bytes)))

    def all(self, step: Callable[[Plain], T]) -> list[T]:
        found = []
        while self._data:
            found.append(step(self))
        return found


def read_plainly(message: bytes) -> tuple[bytes | None, tuple[bytes, ...], list[int]] | None:
    """Return the name, the protocols and the versions that the hello states; None for a malformed one."""
    plain = Plain(message)
    try:
        plain.take(4)
        legacy_version = plain.number(2)
        plain.take(32)
        session, ciphers, compressions = plain.vector(1)._data, plain.vector(2)._data, plain.vector(1)._data
        if len(session) > 32 or not ciphers or len(ciphers) % 2 or not compressions:
            return None
        extensions = plain.vector(2).all(lambda of: (of.number(2), of.vector(2)._data)) if plain._data else []
        found = dict(extensions)
        if plain._data or len(found) != len(extensions):
            return None
        name, protocols, versions = None, [], [legacy_version]
        if 0 in found:
            ((kind, name),) = whole(found[0], 2).all(lambda of: (of.number(1), of.vector(2)._data))
            if kind or not name:
                return None
        if 16 in found:
            protocols = whole(found[16], 2).all(lambda of: of.vector(1)._data)
        if 43 in found:
            versions = whole(found[43], 1).all(lambda of: of.number(2))
    except ValueError:
        return None
    return None if b"" in protocols else (name, tuple(protocols), versions)


def whole(body: bytes, prefix_bytes: int) -> Plain:
    """Return the one vector that the body is, which is not empty."""
    plain = Plain(body)
    found = plain.vector(prefix_bytes)
    if plain._data or not found._data:
        raise ValueError
    return found


def test_a_hello_says_what_the_plain_reading_of_it_says() -> None:
    """Ordinary and damaged ones alike: changed octets, cut out and doubled ones."""
    rng = Random(29)
    accepted = 0
    for number in range(4_000):
        message = bytearray(HELLO[5:])
        for _ in range(rng.randrange(4)):
            at = rng.randrange(4, len(message))
            match rng.randrange(4):
                case 0:
                    message[at] = rng.randrange(256)
                case 1:
                    message[at] = (message[at] + rng.choice((-1, 1))) % 256
                case 2:
                    del message[at : at + rng.randrange(1, 9)]
                case _:
                    message[at:at] = message[at : at + rng.randrange(1, 9)]
            message[1:4] = (len(message) - 4).to_bytes(3)
        found, plain = peek(in_records(bytes(message))), read_plainly(bytes(message))
        if plain is None:
            assert isinstance(found, Failure), number
        elif isinstance(found, ClientHello):
            name, protocols, versions = plain
            accepted += 1
            assert found.server_name == (None if name is None else normalise(name)), number
            assert found.alpn == protocols, number
            assert found.offers_tls13 == (0x304 in versions), number
    assert accepted > 500


@given(st.binary(max_size=64), st.lists(st.integers(0, 64), max_size=6))
@settings(max_examples=300)
def test_arbitrary_bytes_get_one_answer_however_split(data: bytes, cuts: list[int]) -> None:
    assert peek(data, cuts) == peek(data)


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_arbitrary_extensions_never_crash(extensions: bytes) -> None:
    assert isinstance(peek(in_records(message_of(extensions))), ClientHello | Failure)


def vector(body: bytes) -> bytes:
    return len(body).to_bytes(2) + body


X25519, P256, FFDHE8192, GREASE, X25519_ML_KEM_768 = 29, 23, 0x0104, 0x2A2A, 4588


@pytest.mark.parametrize(
    ("groups", "shares", "is_refused"),
    [
        ([X25519, FFDHE8192], [X25519], False),
        ([X25519, FFDHE8192], [], False),  # then a curve is asked for
        ([FFDHE8192, P256], [GREASE, P256, FFDHE8192], False),
        ([FFDHE8192, P256], [GREASE, FFDHE8192, P256], True),
        ([X25519, FFDHE8192], [FFDHE8192], True),
        ([FFDHE8192], [], True),
        ([GREASE], [GREASE], True),
    ],
)
def test_who_would_have_keys_exchanged_in_a_finite_field_is_refused(
    groups: list[int], shares: list[int], is_refused: bool
) -> None:
    answer = peek(hello_offering(groups, shares))
    assert answer is Failure.NO_GROUP if is_refused else isinstance(answer, ClientHello)


def hello_offering(groups: list[int], shares: list[int]) -> bytes:
    known = extension(10, vector(b"".join(group.to_bytes(2) for group in groups)))
    shared = extension(51, vector(b"".join(group.to_bytes(2) + vector(b"key") for group in shares)))
    return in_records(message_of(known + shared + extension(43, b"\x02\x03\x04")))


def test_post_quantum_groups_are_accepted_where_the_library_accepts_them() -> None:
    hello = hello_offering([X25519_ML_KEM_768], [X25519_ML_KEM_768])
    assert peek(hello) is Failure.NO_GROUP
    assert isinstance(peek(hello, groups=CURVES | {X25519_ML_KEM_768}), ClientHello)


def test_a_post_quantum_share_is_used_before_a_finite_field() -> None:
    both = [X25519_ML_KEM_768, FFDHE8192]
    assert isinstance(peek(hello_offering(both, both), groups=CURVES | {X25519_ML_KEM_768}), ClientHello)


def test_the_library_is_asked_for_the_groups_it_accepts() -> None:
    accepted = accepted_groups()
    assert accepted >= CURVES
    assert (X25519_ML_KEM_768 in accepted) is (ssl.OPENSSL_VERSION_INFO >= (3, 5))


@pytest.mark.parametrize("body", [b"", b"\0", b"\0\x05\0\x1d\0\x03ab", b"\0\x03\0\x1d\0", b"\0\0x"])
def test_malformed_key_shares(body: bytes) -> None:
    known = extension(10, vector(X25519.to_bytes(2)))
    hello = message_of(known + extension(51, body) + extension(43, b"\x02\x03\x04"))
    assert peek(in_records(hello)) is Failure.MALFORMED


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\n", b"POST /x HTTP/1.1\r\n", b"OPTIONS * HTTP/1.1\r\n"])
def test_plain_http_is_recognised(start: bytes) -> None:
    assert peek(start) is Failure.PLAIN_HTTP
    assert peek(start, list(range(len(start)))) is Failure.PLAIN_HTTP


@pytest.mark.parametrize("junk", [b"\x80\x2e\x01", b"\0", b"SSH-2.0-x", b"get / ", b"\x16\x02", b"ABCDEFGHIJ"])
def test_junk_is_recognised(junk: bytes) -> None:
    assert peek(junk) is Failure.NOT_TLS


def test_waits_for_more() -> None:
    assert peek(b"GE") is None
    assert peek(HELLO[:-1]) is None


@pytest.mark.parametrize(
    "message",
    [
        b"\x02" + MESSAGE[1:],  # not a ClientHello
        MESSAGE + b"\0",  # something behind it
        message_of(b"\0"),
        message_of(server_name(b"a.example") * 2),
        message_of(extension(0, b"")),
        message_of(extension(0, b"\0\x04\x01\0\x01a")),  # a name type nobody defined
        message_of(extension(0, b"\0\x08\0\0\x01a\0\0\x01b")),  # two names
        message_of(extension(16, b"\0\x01\0")),  # an empty protocol
        message_of(extension(43, b"\x03\x03\x04\x03")),  # half a version
        message_of(b"", ciphers=b"\x13"),
        message_of(b"", ciphers=b""),
    ],
)
def test_wrong_lengths_and_repetitions_are_malformed(message: bytes) -> None:
    assert peek(in_records(message)) is Failure.MALFORMED


def test_records_that_break_the_rules_in_the_middle() -> None:
    assert peek(in_records(MESSAGE, 10)[:15] + b"\x17\x03\x03\0\x01x") is Failure.MALFORMED
    assert peek(b"\x16\x03\x01\0\0") is Failure.MALFORMED


def test_no_more_than_16_kilobytes_whatever_way_they_come() -> None:
    big = message_of(extension(21, bytes(MAX_HELLO_BYTES)))
    assert peek(in_records(big, 8000)) is Failure.TOO_LARGE
    assert peek(b"\x16\x03\x01\x40\x01") is Failure.TOO_LARGE
    fits = message_of(extension(21, bytes(MAX_HELLO_BYTES - 60)))
    assert isinstance(peek(in_records(fits)), ClientHello)
    assert peek(in_records(fits, *[1] * len(fits))) is Failure.TOO_LARGE  # headers count


def test_old_versions_are_refused_before_anything_is_looked_up() -> None:
    assert peek(in_records(message_of(server_name(b"a.example"), version=b"\x03\x02"))) is Failure.OLD_VERSION
    assert peek(in_records(message_of(extension(43, b"\x02\x03\x02")))) is Failure.OLD_VERSION


def test_a_hello_may_end_without_extensions() -> None:
    message = message_of(b"")[:-2]
    message = b"\x01" + (len(message) - 4).to_bytes(3) + message[4:]
    assert peek(in_records(message)) == ClientHello(None, (), offers_tls12=True, offers_tls13=False)


@pytest.mark.parametrize(
    ("given_name", "normal"),
    [
        (b"A.Example", "a.example"),
        (b"a.example.", "a.example"),
        (b"xn--bcher-kva.example", "xn--bcher-kva.example"),
        (b"_dmarc.a.example", "_dmarc.a.example"),
        (b"localhost", "localhost"),
        (b"127.0.0.1", None),
        (b"::1", None),
        (b"a..example", None),
        (b".", None),
        (b"a.example..", None),
        (b"*.example", None),
        (b"-a.example", None),
        (b"a.example\0.b", None),
        ("bücher.example".encode(), None),
        (b"a" * 64 + b".example", None),
        (b"a." * 127 + b"a", None),
    ],
)
def test_names_are_normalised_or_refused(given_name: bytes, normal: str | None) -> None:
    assert normalise(given_name) == normal
    answer = peek(in_records(message_of(server_name(given_name))))
    assert answer is Failure.BAD_NAME if normal is None else isinstance(answer, ClientHello)
