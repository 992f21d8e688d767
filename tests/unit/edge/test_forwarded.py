"""Who the origin is told the client is."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from edge.http.forwarded import Client, address_of, is_in

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def test_strangers_are_not_believed() -> None:
    client = Client("192.0.2.7", secure=True, trusted_proxies=TRUSTED)
    assert client.fields(b"6.6.6.6", b"http", None) == (
        b"\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-IP: 192.0.2.7"
        b"\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443"
    )


def test_trusted_proxies_are_believed_back_to_the_first_stranger() -> None:
    client = Client("10.0.0.1", secure=False, trusted_proxies=TRUSTED)
    assert client.fields(b"6.6.6.6, 192.0.2.7, fd00::2", b"https", None) == (
        b"\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.7, fd00::2, 10.0.0.1"
        b"\r\nX-Forwarded-IP: 192.0.2.7\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Port: 443"
    )


def test_nonsense_in_the_chain_ends_the_belief() -> None:
    client = Client("10.0.0.1", secure=False, trusted_proxies=TRUSTED)
    assert b"X-Forwarded-IP: 10.0.0.1\r\nX-Forwarded-Proto: http" in client.fields(b"unknown", b"gopher", None)


def test_the_public_port_is_the_one_the_client_named_else_its_schemes_own() -> None:
    behind = Client("10.0.0.1", secure=False, trusted_proxies=TRUSTED)
    assert behind.fields(b"192.0.2.7", b"https", None).endswith(b"Proto: https\r\nX-Forwarded-Port: 443")
    assert behind.fields(b"192.0.2.7", b"https", 8443).endswith(b"Proto: https\r\nX-Forwarded-Port: 8443")
    direct = Client("192.0.2.7", secure=False, trusted_proxies=())
    assert direct.fields(b"", b"", None).endswith(b"Proto: http\r\nX-Forwarded-Port: 80")
    assert direct.fields(b"", b"", 8080).endswith(b"Proto: http\r\nX-Forwarded-Port: 8080")


def test_where_a_request_came_from_in_the_first_place() -> None:
    assert Client("10.0.0.1", secure=True, trusted_proxies=TRUSTED).origin(b"192.0.2.7, 10.0.0.9") == "192.0.2.7"
    assert Client("10.0.0.1", secure=True, trusted_proxies=TRUSTED).origin(b"") == "10.0.0.1"
    assert Client("192.0.2.7", secure=True, trusted_proxies=TRUSTED).origin(b"6.6.6.6") == "192.0.2.7"


@pytest.mark.parametrize(
    ("peername", "address"),
    [
        (("192.0.2.1", 5), "192.0.2.1"),
        (("::ffff:192.0.2.1", 5, 0, 0), "192.0.2.1"),
        (("fe80::1%eth0", 5, 0, 2), "fe80::1"),
        (("2001:db8::1", 5, 0, 0), "2001:db8::1"),
        ("", ""),
        (None, ""),
    ],
)
def test_addresses_of_peers(peername: object, address: str) -> None:
    assert address_of(peername) == address
    assert is_in(address, TRUSTED) is False
