"""TLS, certificates and sessions: replacement, resumption, the budget for building contexts."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from functools import partial
from pathlib import Path

import pytest

from edge.tls.shared import TlsLimits
from tests.component.tls_peers import TLS12, TLS13, Http, Inner, ask, connection, edge, in_thread, receive, refusal
from tests.tls_parts import the_ca


async def test_a_new_certificate_serves_new_connections_and_leaves_the_old_ones_alone() -> None:
    async with edge() as here:
        old = await in_thread(lambda: connection(here.port))
        with old:
            before = old.getpeercert(binary_form=True)
            here.replica.put_certificate("a.example")
            here.tls.on_replica_change()
            new = await in_thread(lambda: connection(here.port))
            with new:
                assert new.getpeercert(binary_form=True) != before
            await in_thread(lambda: old.sendall(b"still here"))
            assert await in_thread(lambda: receive(old, 10)) == b"still here"
            here.replica.remove("certificate", "a.example")
            assert await in_thread(lambda: refusal(here.port)) == "TLSV1_UNRECOGNIZED_NAME"


class Visitor:
    """A client that offers the session of its last connection again."""

    def __init__(self, port: int, version: ssl.TLSVersion, *, takes_tickets: bool = True) -> None:
        self._port = port
        self._version = version
        self._context = the_ca().client_context()
        if not takes_tickets:
            self._context.options |= ssl.OP_NO_TICKET
        self._session: ssl.SSLSession | None = None

    async def is_resumed(self, name: str = "a.example") -> bool:
        return await in_thread(lambda: self._visit(name))

    def _visit(self, name: str) -> bool:
        with connection(self._port, name, self._version, context=self._context, session=self._session) as client:
            client.sendall(b"x")
            receive(client, 1)  # a TLS 1.3 client has the ticket by now
            self._session, is_resumed = client.session, client.session_reused is True
            client.unwrap().close()
            return is_resumed


@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_a_returning_client_resumes_its_session(version: ssl.TLSVersion) -> None:
    async with edge() as here:
        visitor = Visitor(here.port, version)
        assert [await visitor.is_resumed() for _ in range(3)] == [False, True, True]
        assert (here.tls.counters.handshakes, here.tls.counters.resumed) == (3, 2)


async def test_an_old_client_without_tickets_resumes_by_session_id() -> None:
    async with edge() as here:
        visitor = Visitor(here.port, TLS12, takes_tickets=False)
        assert [await visitor.is_resumed() for _ in range(2)] == [False, True]


@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_a_session_is_never_resumed_under_another_name(version: ssl.TLSVersion) -> None:
    async with edge() as here:
        visitor = Visitor(here.port, version)
        assert not await visitor.is_resumed("a.example")
        assert not await visitor.is_resumed("b.example")


@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_a_session_is_never_resumed_under_another_application(version: ssl.TLSVersion) -> None:
    async with edge() as here:
        here.replica.put("route", "power/a.example", {"application_id": "one"})
        visitor = Visitor(here.port, version)
        assert [await visitor.is_resumed() for _ in range(2)] == [False, True]
        here.replica.put("route", "power/a.example", {"application_id": "two"})
        assert [await visitor.is_resumed() for _ in range(2)] == [False, True]


@pytest.mark.parametrize("version", [TLS12, TLS13])
async def test_a_session_is_not_resumed_after_its_ticket_key_was_discarded(version: ssl.TLSVersion) -> None:
    limits = TlsLimits(context_seconds=0.5)
    async with edge(limits=limits) as here:
        visitor = Visitor(here.port, version)
        await visitor.is_resumed()
        async with asyncio.timeout(20):
            while await visitor.is_resumed():
                assert here.tls.counters.context_builds == 1
        assert here.tls.counters.context_builds == 2


async def test_tickets_invite_no_early_data(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(the_ca().pem)
    async with edge(Http) as here:
        command = ["openssl", "s_client", "-connect", f"127.0.0.1:{here.port}", "-servername", "a.example", "-tls1_3"]
        command += ["-CAfile", str(tmp_path / "ca.pem"), "-ign_eof"]
        done = await in_thread(
            lambda: subprocess.run(command, input=b"GET /\n", capture_output=True, timeout=20, check=False)
        )
        assert done.stdout.count(b"New Session Ticket arrived") == 1, done.stderr
        assert b"Max Early Data: 0\n" in done.stdout


async def test_sessions_of_old_clients_do_not_pile_up() -> None:
    async with edge(Inner, "a.example") as here:
        context = the_ca().client_context()
        context.options |= ssl.OP_NO_TICKET

        def connect_often() -> None:
            for _ in range(150):
                with connection(here.port, version=TLS12, context=context) as client:
                    client.unwrap().close()

        await in_thread(connect_often)
        assert here.tls.counters.context_builds == 3


async def test_contexts_are_bounded_and_builds_are_paced() -> None:
    domains = [f"d{number}.example" for number in range(12)]
    limits = TlsLimits(contexts=4, builds_per_second=200, build_burst=2)
    async with edge(Inner, *domains, limits=limits) as here:
        answers = await asyncio.gather(*(in_thread(partial(ask, here.port, name)) for name in domains))
        assert answers == [b"hello"] * 12
        assert here.tls.counters.context_builds == 12

        async def builds_of(names: list[str]) -> int:
            before = here.tls.counters.context_builds
            for name in names:
                assert await in_thread(partial(ask, here.port, name)) == b"hello"
            return here.tls.counters.context_builds - before

        await builds_of(domains[:4])
        assert [await builds_of(domains[:4]), await builds_of(domains[4:8]), await builds_of(domains[:4])] == [0, 4, 4]


async def test_too_many_waiting_for_a_build_are_refused() -> None:
    limits = TlsLimits(builds_per_second=1, build_burst=1, waiting_for_build=0)
    async with edge(limits=limits) as here:
        assert await in_thread(lambda: ask(here.port, "a.example")) == b"hello"
        assert await in_thread(lambda: refusal(here.port, "b.example")) == "TLSV1_ALERT_INTERNAL_ERROR"
        assert await in_thread(lambda: ask(here.port, "a.example")) == b"hello"
        assert here.tls.counters.cache_hits == 1


async def test_wildcards_certificate_is_presented_for_names_one_label_beneath_without_their_own() -> None:
    async with edge(Inner, "*.customer.example", "b.customer.example") as here:
        for name in ("a.customer.example", "b.customer.example", "c.customer.example"):
            assert await in_thread(partial(ask, here.port, name)) == b"hello"
        assert here.tls.counters.context_builds == 2
        for name in ("x.a.customer.example", "customer.example"):
            assert await in_thread(partial(refusal, here.port, name)) == "TLSV1_UNRECOGNIZED_NAME"
