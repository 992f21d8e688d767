"""Who the origin is told the client is (SPEC 4.7)."""

from __future__ import annotations

from ipaddress import ip_network

from edge.http.forwarded import Client

TRUSTED = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


def test_strangers_are_not_believed() -> None:
    client = Client("192.0.2.7", secure=True, trusted_proxies=TRUSTED)
    assert client.fields(b"6.6.6.6", b"http") == (
        b"\r\nX-Forwarded-For: 192.0.2.7\r\nX-Forwarded-IP: 192.0.2.7\r\nX-Forwarded-Proto: https"
    )


def test_trusted_proxies_are_believed_back_to_the_first_stranger() -> None:
    client = Client("10.0.0.1", secure=False, trusted_proxies=TRUSTED)
    assert client.fields(b"6.6.6.6, 192.0.2.7, fd00::2", b"https") == (
        b"\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.7, fd00::2, 10.0.0.1"
        b"\r\nX-Forwarded-IP: 192.0.2.7\r\nX-Forwarded-Proto: https"
    )


def test_nonsense_in_the_chain_ends_the_belief() -> None:
    client = Client("10.0.0.1", secure=False, trusted_proxies=TRUSTED)
    assert b"X-Forwarded-IP: 10.0.0.1\r\nX-Forwarded-Proto: http" in client.fields(b"unknown", b"gopher")
