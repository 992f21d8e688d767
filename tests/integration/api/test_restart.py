"""The API restarted while clients call it: systemd holds its socket, the old process drains, the new one goes on."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from common.db.pool import Database
from common.secrets import load_keyring
from tests.children import ROOT, clean_environment
from tests.integration.api.connecting import CONFIG
from tests.integration.api.partner import Partner, enrol_partner
from tests.waiting import until

AS_SYSTEMD = str(Path(ROOT) / "tests/component/socket_unit.py")
PATIENCE_SECONDS = 90.0
GET = b"GET /healthz HTTP/1.1\r\nHost: api\r\n"


class Api:
    """A service unit with its socket unit."""

    def __init__(self, state_dir: Path, dsn: str) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self.socket.getsockname()[1]
        self._environ = clean_environment(
            FRONTAGE_STATE_DIR=str(state_dir),
            FRONTAGE_DATABASE_URL=dsn,
            FRONTAGE_API_LISTEN=f"127.0.0.1:{self.port}",
            FRONTAGE_API_ADMIN="off",
            FRONTAGE_API_REQUESTS_PER_SECOND="100000",
            FRONTAGE_API_REQUESTS_PER_SECOND_PER_ADDRESS="100000",
        )
        self._log = (state_dir / "log").open("ab")
        self.process: subprocess.Popen[bytes] | None = None

    def launch(self, name: str = "api") -> subprocess.Popen[bytes]:
        held = self.socket.fileno()
        self.process = subprocess.Popen(
            [sys.executable, AS_SYSTEMD, f"{name}={held}", "--", sys.executable, "-m", "api"],
            cwd=ROOT,
            env=self._environ,
            pass_fds=[held],
            stdout=subprocess.PIPE,
            stderr=self._log,
        )
        return self.process

    async def start(self) -> None:
        """Returns once it serves. It is launched again when it ends first, as Restart=always does: on a busy machine
        Postgres may not answer it in time."""
        while True:
            output = self.launch().stdout
            assert output is not None
            if await asyncio.to_thread(output.readline) == b"ready\n":
                return
            await asyncio.to_thread(output.close)
            assert self.process is not None
            await asyncio.to_thread(self.process.wait)

    async def stop(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(self.process.wait, PATIENCE_SECONDS) == 0
        assert self.process.stdout is not None
        self.process.stdout.close()

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        self._log.close()
        self.socket.close()


@pytest.fixture
async def api(dsn: str, tmp_path: Path) -> AsyncIterator[Api]:
    load_keyring(tmp_path / "master.key", create=True)
    api = Api(tmp_path, dsn)
    try:
        yield api
    finally:
        api.end()


class Load:
    """Clients that ask without end, each request on a connection of its own, or many on one. A connection that is
    closed between two requests is opened anew, as RFC 9112 §9.5 has it; any other failure fails the test."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._is_over = False
        self.answered = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with asyncio.TaskGroup() as clients:
            for _ in range(4):
                clients.create_task(self._ask_on_new_connections())
                clients.create_task(self._ask_on_one_connection())
            yield
            self._is_over = True

    async def more(self) -> None:
        enough = self.answered + 50
        await until(lambda: self.answered >= enough, seconds=PATIENCE_SECONDS)

    async def _ask_on_new_connections(self) -> None:
        while not self._is_over:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            writer.write(GET + b"Connection: close\r\n\r\n")
            assert await _answer(reader) is not None, "cut"
            writer.close()
            self.answered += 1

    async def _ask_on_one_connection(self) -> None:
        while not self._is_over:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            answers = 0
            while not self._is_over:
                writer.write(GET + b"\r\n")
                head = await _answer(reader)
                if head is None:
                    assert answers, "the first request of a connection was cut"
                    break
                answers += 1
                self.answered += 1
                if b"connection: close" in head.lower():
                    break
            writer.close()


async def _answer(reader: asyncio.StreamReader) -> bytes | None:
    """The head of a whole response with status 200; None if the connection ended before its first byte."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise AssertionError("cut inside a response") from error
            return None
        except ConnectionResetError:
            return None
        assert head.startswith(b"HTTP/1.1 200 "), head
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        json.loads(await reader.readexactly(length))
        return head


async def test_no_call_is_refused_or_cut_while_the_api_is_restarted_under_load(api: Api) -> None:
    await api.start()
    load = Load(api.port)
    async with load.running():
        await load.more()
        await api.stop()
        await api.start()
        await load.more()


async def test_streams_end_whole_and_a_body_on_its_way_is_waited_for(
    api: Api, database: Database, tmp_path: Path
) -> None:
    await api.start()
    keyring = load_keyring(tmp_path / "master.key")
    application, secret = await enrol_partner(database, keyring, "apps.partner.test")
    async with aiohttp.ClientSession() as session:
        partner = Partner(application.id, secret, session, f"http://127.0.0.1:{api.port}")
        flow = (await partner.call("POST", "/connect/flows", json=CONFIG)).body
        url = f"{partner.url}/connect/flows/{flow['id']}/events"
        reader, writer, body = await _send_head(api)
        async with session.get(url, headers=partner.headers) as stream:
            assert await _next_state(stream) == "choosing"
            stopped = asyncio.create_task(api.stop())
            await stream.content.read()  # raises unless the last chunk has arrived
        writer.write(body)  # the process drains by now
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert head.startswith(b"HTTP/1.1 401 ")
        assert b"connection: close" in head.lower()
        writer.close()
        await stopped
        await api.start()
        async with session.get(url, headers=partner.headers) as stream:
            assert await _next_state(stream) == "choosing"


async def _send_head(api: Api) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """Returns once the API waits for the body, which is returned."""
    body = orjson.dumps({"applicationId": "unknown", "secret": "x"})
    reader, writer = await asyncio.open_connection("127.0.0.1", api.port)
    writer.write(b"POST /token HTTP/1.1\r\nHost: api\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n")
    writer.write(b"Content-Length: %d\r\n\r\n" % len(body))
    assert b" 100 " in await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
    return reader, writer, body


async def _next_state(stream: aiohttp.ClientResponse) -> str:
    async for line in stream.content:
        if line.startswith(b"data: "):
            return str(orjson.loads(line.removeprefix(b"data: "))["state"])
    raise AssertionError("the stream ended")


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("http", "systemd passes a socket named 'http': set FileDescriptorName= to api"),
        ("api", "FRONTAGE_API_LISTEN is 127.0.0.1:1, and systemd's socket listens on port"),
    ],
)
async def test_a_socket_that_does_not_fit_stops_the_start_with_one_line(
    api: Api, tmp_path: Path, name: str, complaint: str
) -> None:
    if name == "api":
        api._environ["FRONTAGE_API_LISTEN"] = "127.0.0.1:1"
    process = api.launch(name)
    assert await asyncio.to_thread(process.wait, PATIENCE_SECONDS) == 1
    assert process.stdout is not None
    process.stdout.close()
    log = (tmp_path / "log").read_text()
    assert complaint in log
    assert log.count("\n") == 1
