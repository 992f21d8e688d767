"""Fields that an application has its responses carry: added where the origin sends none of that name."""

from __future__ import annotations

import pytest

from edge.routing.response_policy import add_fields, compile_policy

HSTS, NOSNIFF = ("Strict-Transport-Security", "max-age=60"), ("X-Content-Type-Options", "nosniff")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"


@pytest.mark.parametrize(
    ("given", "scheme", "added"),
    [
        (b"", b"https", [HSTS, NOSNIFF]),
        (b"", b"http", [NOSNIFF]),
        (b"strict-TRANSPORT-security: max-age=0\r\n", b"https", [NOSNIFF]),
        (b"X-Content-Type-Options:nosniff\r\nStrict-Transport-Security:max-age=1\r\n", b"https", []),
        (b"X-Of: x-content-type-options: a\r\n", b"https", [HSTS, NOSNIFF]),
    ],
)
def test_a_field_is_added_where_there_is_none_of_its_name(
    given: bytes, scheme: bytes, added: list[tuple[str, str]]
) -> None:
    policy = compile_policy([HSTS, NOSNIFF])
    assert policy is not None
    head = HEAD.replace(b"\r\n", b"\r\n" + given, 1)
    lines = "".join(f"{name}: {value}\r\n" for name, value in added).encode()
    assert add_fields(head, policy, scheme) == head[:-2] + lines + b"\r\n"


def test_no_field_is_no_policy() -> None:
    assert compile_policy([]) is None
