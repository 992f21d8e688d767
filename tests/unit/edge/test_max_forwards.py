"""How far an OPTIONS request may still go (RFC 9110 §7.6.2)."""

from __future__ import annotations

import pytest

from edge.http.error_responses import Rejected
from edge.http.max_forwards import count_down
from edge.http.request import HeadLimits, RequestHead, parse


def asked(fields: bytes) -> RequestHead:
    return parse(b"OPTIONS /a HTTP/1.1\r\nHost: shop.example.com\r\n" + fields + b"\r\n", HeadLimits())


@pytest.mark.parametrize(
    ("received", "left"),
    [
        (b"1", b"0"),
        (b"\t 10 ", b"9"),
        (b"0010", b"9"),
        (b"999999999", b"255"),
        (b"9" * 5000, b"255"),
    ],
)
def test_each_hop_counts_one_down_from_what_we_support_at_most(received: bytes, left: bytes) -> None:
    further = count_down(asked(b"A: b\r\nmax-forwards:%b\r\nC: d\r\n" % received))
    assert further is not None
    assert further.kept == b"\r\nA: b\r\nC: d\r\nMax-Forwards: " + left


def test_a_long_run_of_blanks_is_no_number() -> None:
    with pytest.raises(Rejected):
        count_down(asked(b"Max-Forwards: 1" + b" " * 30_000 + b"x\r\n"))


@pytest.mark.parametrize("received", [b"0", b"000"])
def test_none_left_ends_here(received: bytes) -> None:
    assert count_down(asked(b"Max-Forwards: %b\r\n" % received)) is None


def test_who_sets_no_bound_has_none() -> None:
    head = asked(b"A: Max-Forwards: 0\r\n")
    assert count_down(head) is head


@pytest.mark.parametrize("received", [b"", b"-1", b"1, 2", b"1\r\nMax-Forwards: 1", b"\xb2"])
def test_what_is_no_single_number_is_refused(received: bytes) -> None:
    with pytest.raises(Rejected):
        count_down(asked(b"Max-Forwards: %b\r\n" % received))
