"""Addresses of several servers: one that keeps silent does not keep a role from the one that answers."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from api.cli.backup import _address
from common.db.hosts import split_hosts
from common.db.listener import Listener
from common.db.pool import Database, SessionTimeouts, open_pool
from common.db.session import open_session
from common.errors import DatabaseUnavailable, OperatorError
from tests import rows
from tests.beside import beside
from tests.integration.cli.frontage import environment, run
from tests.integration.replica import parts
from tests.waiting import until

HASTY = SessionTimeouts(connect_seconds=1.0, acquire_seconds=3.0, query_seconds=1.0)


@pytest.fixture
def dropping() -> Iterator[int]:
    """The port of a server that answers no SYN: its queue of connections is full."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = int(listening.getsockname()[1])
        while True:
            client = stack.enter_context(socket.socket())
            client.settimeout(0.2)
            try:
                client.connect(("127.0.0.1", port))
            except TimeoutError:
                break
        yield port


@pytest.fixture
def mute() -> Iterator[int]:
    """The port of a server that accepts connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listening:
        yield int(listening.getsockname()[1])


@pytest.fixture(params=["dropping", "mute"])
def silent(request: pytest.FixtureRequest) -> int:
    return int(request.getfixturevalue(request.param))


def after(dsn: str, *ports: int) -> str:
    """`dsn`, and servers on these ports of this machine before it."""
    first = "".join(f"127.0.0.1:{port}," for port in ports)
    assert "?host=/" in dsn
    return dsn.replace("?host=", f"?host={first}")


async def test_a_pool_passes_over_a_silent_server(dsn: str, silent: int) -> None:
    async with (
        open_pool(after(dsn, silent), size=2, application_name="test") as database,
        database.transaction() as one,
        database.transaction() as other,
    ):
        assert await one.fetchval("select 1") == await other.fetchval("select 1")


async def test_several_silent_servers_leave_time_for_the_last(dsn: str, dropping: int, mute: int) -> None:
    address = after(dsn, dropping, mute, dropping, mute)
    connection = await open_session(address, "test")
    try:
        assert await connection.fetchval("select 1") == 1
    finally:
        connection.terminate()


async def test_a_listener_passes_over_a_silent_server(dsn: str, database: Database, silent: int) -> None:
    wakes: list[None] = []
    listener = Listener(after(dsn, silent), lambda: wakes.append(None), channel="test")
    async with beside(listener.run()):
        await until(lambda: listener.is_listening, "listening")
        before = len(wakes)
        async with database.connection() as connection:
            await connection.execute("notify test")
        await until(lambda: len(wakes) > before, "the notification")


async def test_an_edge_follows_past_a_silent_server(dsn: str, silent: int, tmp_path: Path) -> None:
    writer = await open_session(dsn, "writer")
    try:
        await rows.add_application(writer)
        await parts.add_routes(writer, ["a.example"])
        replicator = parts.make_replicator(after(dsn, silent), tmp_path)
        async with parts.running(replicator):
            await until(lambda: replicator.version == 2 and replicator.connected, "the first copy")
            await parts.assert_equal(replicator, writer)
    finally:
        writer.terminate()


async def test_where_every_server_keeps_silent_it_ends_in_time(dropping: int, mute: int) -> None:
    address = f"postgresql://u@127.0.0.1:{dropping},127.0.0.1:{mute}/d"
    with pytest.raises(DatabaseUnavailable, match="in time"):
        await open_session(address, "test", HASTY)


async def test_attempts_that_are_left_are_ended(dsn: str, mute: int) -> None:
    connection = await open_session(after(dsn, mute), "test")
    connection.terminate()
    assert [task for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []


async def test_a_refused_server_is_passed_over_and_a_wrong_password_is_reported(dsn: str) -> None:
    connection = await open_session(after(dsn, 1), "test")
    connection.terminate()
    wrong = re.sub(r":[^:@]*@", ":wrong@", dsn)
    with pytest.raises(DatabaseUnavailable):
        await open_session(after(wrong, 1), "test")


async def test_a_role_of_the_command_line_passes_over_a_silent_server(dsn: str, dropping: int, tmp_path: Path) -> None:
    env = environment(tmp_path, DATABASE_URL=after(dsn, dropping))
    assert (await asyncio.to_thread(run, "migrate", env=env)).returncode == 0
    listed = await asyncio.to_thread(run, "app", "list", "--json", env=env)
    assert listed.returncode == 0, listed.stderr


async def test_idle_connections_to_a_server_that_kept_silent_are_not_tried_again(dsn: str) -> None:
    """Each would cost its caller a deadline."""
    async with open_pool(dsn, size=4, application_name="test", timeouts=HASTY) as database:
        async with database.connection() as a, database.connection() as b, database.connection() as c:
            before = [await each.fetchval("select pg_backend_pid()") for each in (a, b, c)]
        with pytest.raises(DatabaseUnavailable, match="in time"):
            async with database.connection() as connection:
                await connection.execute("set statement_timeout = 0; select pg_sleep(30)")
        async with database.connection() as a, database.connection() as b:
            assert not {await each.fetchval("select pg_backend_pid()") for each in (a, b)} & set(before)


async def test_the_kernel_ends_a_session_over_tcp_whose_server_is_gone(dsn: str) -> None:
    path = f"{parse_qs(urlsplit(dsn).query)['host'][0]}/.s.PGSQL.5432"

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_unix_connection(path)
        with closing(server_writer), closing(writer):
            await asyncio.gather(_pump(reader, server_writer), _pump(server_reader, writer))

    async with await asyncio.start_server(forward, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        connection = await open_session(re.sub(r"\?host=.*", f"?host=127.0.0.1:{port}", dsn), "test")
        own = connection._transport.get_extra_info("socket")  # type: ignore[attr-defined]
        assert own.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert own.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 2500
        await connection.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
    writer.write_eof()


@pytest.mark.parametrize(
    ("dsn", "expected"),
    [
        ("postgresql://u:p@a/d", ["postgresql://u:p@a/d"]),
        ("postgresql:///d?host=/run/x&port=5", ["postgresql:///d?host=/run/x&port=5"]),
        (
            "postgresql://u:p@a:1,b,[::1]:3/d?sslmode=require",
            [
                f"postgresql://u:p@{host}/d?target_session_attrs=read-write&sslmode=require"
                for host in ("a:1", "b", "[::1]:3")
            ],
        ),
        (
            "postgres://u:p@a,b/d?target_session_attrs=any",
            ["postgres://u:p@a/d?target_session_attrs=any", "postgres://u:p@b/d?target_session_attrs=any"],
        ),
    ],
)
def test_each_server_has_an_address(dsn: str, expected: list[str]) -> None:
    assert split_hosts(dsn) == expected


def test_ports_of_listed_hosts_are_each_its_own() -> None:
    own = split_hosts("postgresql:///d?host=a,b&port=1,2&user=u%40x")
    assert [("host=a" in own[0], "port=1" in own[0], "user=u%40x" in own[0])] == [(True, True, True)]
    assert ("host=b" in own[1], "port=2" in own[1]) == (True, True)
    assert all("port=7" in each for each in split_hosts("postgresql:///d?host=a,b&port=7"))


@pytest.mark.parametrize(
    "dsn", ["postgresql://a,,b/d", "postgresql:///d?host=a,b&port=1,2,3", "postgresql://" + "a," * 16 + "a/d"]
)
async def test_an_address_that_is_none_is_for_the_operator(dsn: str) -> None:
    with pytest.raises(OperatorError, match="FRONTAGE_DATABASE_URL"):
        await open_session(dsn, "test")


def test_postgres_own_programs_pass_over_a_silent_server() -> None:
    assert _address("postgresql://u@a,b/d")[1]["PGCONNECT_TIMEOUT"] == "3"


def test_postgres_own_programs_get_every_server_and_no_password() -> None:
    argument, environ = _address("postgresql://u%40x:p%2Fw@a:1,[::1]:3/d?sslmode=require")
    assert argument == "--dbname=postgresql://u%40x@a:1,[::1]:3/d?sslmode=require"
    assert environ["PGPASSWORD"] == "p/w"
