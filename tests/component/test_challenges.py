"""HTTP-01 challenges at the edge: which it answers by itself, which it passes on, and never a redirect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.component.peers import Edge, Origin, answer_each, edge, origin

DOMAIN = "shop.example.com"
TOKEN = "evaGxfADs6pSRb2LAv9IZf17Dt3juxGJ-PCt92wr-oA"  # RFC 8555 §8.3's own
PATH = f"/.well-known/acme-challenge/{TOKEN}"
THUMBPRINT = "9jg46WB3rR_AHD-EBXdN7cBkH1WOu0tA3M9fm21mqTI"
OURS = 200, f"{TOKEN}.{THUMBPRINT}".encode()
THE_ORIGINS = 200, b"ok"


@pytest.fixture
async def there() -> AsyncIterator[Origin]:
    async with origin(answer_each) as one:
        yield one


@pytest.fixture
async def proxy(tmp_path: Path, there: Origin) -> AsyncIterator[Edge]:
    """The plain port of an edge that redirects to HTTPS, with an enrolled domain that has its certificate."""
    async with edge(tmp_path, secure=False) as proxy:
        proxy.replica.records["acme_key", "current"] = {"thumbprint": THUMBPRINT}
        proxy.replica.enrol(DOMAIN, there.url)
        proxy.change()
        yield proxy


async def ask(proxy: Edge, path: str = PATH, *, host: str = DOMAIN, method: str = "GET") -> tuple[int, bytes]:
    client = await proxy.connect()
    await client.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
    answer = await client.rest()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def without_certificate(proxy: Edge, domain: str = DOMAIN) -> None:
    del proxy.replica.records["certificate", domain]
    proxy.change()


async def test_domain_without_certificate_answers_any_token(proxy: Edge) -> None:
    without_certificate(proxy)
    assert await ask(proxy) == OURS
    assert await ask(proxy, PATH + "?x=1") == OURS
    assert await ask(proxy, host=f"{DOMAIN.upper()}.:5002") == OURS
    assert await ask(proxy, method="HEAD") == (200, b"")
    assert await ask(proxy, PATH.replace(TOKEN, "x")) == (200, f"x.{THUMBPRINT}".encode())


async def test_domain_whose_order_runs_answers_beside_its_certificate(proxy: Edge) -> None:
    proxy.replica.records["order", DOMAIN] = {"domain": DOMAIN, "hold_until": 0}
    assert await ask(proxy) == OURS


async def test_domain_with_a_certificate_passes_challenges_to_its_origin(proxy: Edge) -> None:
    assert await ask(proxy) == THE_ORIGINS


@pytest.mark.parametrize("rest", ["", "a/b", "a.b", "%41bc", TOKEN + "=", "a b".replace(" ", "+"), "x" * 257])
async def test_what_is_no_token_is_the_origins(proxy: Edge, rest: str) -> None:
    without_certificate(proxy)
    assert await ask(proxy, f"/.well-known/acme-challenge/{rest}") == THE_ORIGINS


async def test_other_paths_and_methods_are_not_answered(proxy: Edge) -> None:
    proxy.replica.records["order", DOMAIN] = {"domain": DOMAIN, "hold_until": 0}
    assert await ask(proxy, method="POST") == THE_ORIGINS
    assert (await ask(proxy, "/.well-known/other"))[0] == 308
    assert (await ask(proxy, "/"))[0] == 308


async def test_unknown_domain_is_not_found(proxy: Edge) -> None:
    assert (await ask(proxy, host="other.example.com"))[0] == 404


async def test_edge_that_is_cut_off_answers_for_every_domain(proxy: Edge) -> None:
    proxy.replica.cut_off = True
    assert await ask(proxy) == OURS
    assert await ask(proxy, host="enrolled-meanwhile.example.com") == OURS
    assert (await ask(proxy, "/", host="enrolled-meanwhile.example.com"))[0] == 404


async def test_without_an_account_challenges_are_the_origins_and_not_redirected(proxy: Edge) -> None:
    del proxy.replica.records["acme_key", "current"]
    without_certificate(proxy)
    assert await ask(proxy) == THE_ORIGINS


async def test_challenges_are_answered_over_https_too(tmp_path: Path, there: Origin) -> None:
    async with edge(tmp_path, secure=True) as proxy:
        proxy.replica.records["acme_key", "current"] = {"thumbprint": THUMBPRINT}
        proxy.replica.enrol(DOMAIN, there.url)
        proxy.replica.records["order", DOMAIN] = {"domain": DOMAIN, "hold_until": 0}
        proxy.change()
        assert await ask(proxy) == OURS
