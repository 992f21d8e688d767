"""From `frontage app set` and `domain power` through Postgres, the feed and the replica to what the edge does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common.db.pool import Database
from tests.component.edge_process import EdgeProcess
from tests.integration.cli.frontage import environment, run
from tests.integration.edge.origins import an_echo
from tests.integration.edge.test_role import DOMAIN, edge, power
from tests.unit.common.test_signatures import in_python
from tests.waiting import until, until_equal

__all__ = ["edge"]


async def browse(process: EdgeProcess) -> tuple[int, str]:
    """Status and body of one answer to a browser."""
    reader, writer = await asyncio.open_connection("127.0.0.1", process.http)
    try:
        writer.write(f"GET /x?y HTTP/1.1\r\nHost: {DOMAIN}\r\nAccept: text/html\r\nConnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read(-1)).partition(b"\r\n\r\n")
    finally:
        writer.close()
    return int(head.split()[1]), body.decode()


async def upload(process: EdgeProcess, size: int) -> int:
    """Status of the answer to a body of `size` bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", process.http)
    try:
        head = f"POST / HTTP/1.1\r\nHost: {DOMAIN}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode() + bytes(size))
        return int((await reader.readline()).split()[1])
    finally:
        writer.close()


async def browse_until(process: EdgeProcess, condition: Callable[[int, str], bool]) -> str:
    """The body of the first answer like that."""

    async def matching() -> str | None:
        status, body = await browse(process)
        return body if condition(status, body) else None

    return await until(matching) or ""


async def test_what_is_set_on_the_command_line_is_done_at_the_edge(
    edge: EdgeProcess,
    database: Database,
    dsn: str,
    tmp_path: Path,
) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn)

    async def set_(*arguments: str) -> Any:
        done = await asyncio.to_thread(run, "app", "set", "app", *arguments, env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def is_signed_by(key: str, signatures: int) -> Callable[[int, str], bool]:
        def check(status: int, head: str) -> bool:
            value = head.partition("X-Service-Signature: ")[2].partition("\r\n")[0]
            return value.count("v1=") == signatures and in_python(value, "GET", DOMAIN, "/x?y", key)

        return check

    page = tmp_path / "page.html"
    page.write_text("<h1>Ours: {{status}}</h1>" + "ü" * 32_000)
    async with an_echo() as origin:
        await power(database, origin)
        await edge.start()
        first = (await set_("--signature", "on"))["signatureKey"]
        await browse_until(edge, is_signed_by(first, 1))
        second = (await set_("--signature", "rotate", "--send-host", "customer"))["signatureKey"]
        head = await browse_until(edge, is_signed_by(first, 2))
        assert is_signed_by(second, 2)(200, head)
        assert head.startswith(f"GET /x?y HTTP/1.1\r\nHost: {DOMAIN}\r\n")
        await set_("--maintenance", "on", "--error-page", str(page))
        shown = await browse_until(edge, lambda status, body: status == 503)
        assert shown == page.read_text().replace("{{status}}", "503")
        await set_("--error-page", "none")
        await browse_until(edge, lambda status, body: "being worked on" in body)
        await set_("--maintenance", "off", "--signature", "off", "--buffer-uploads", "100")
        await browse_until(edge, lambda status, head: status == 200 and "Signature" not in head)
        assert await upload(edge, 101) == 413
        await set_("--buffer-uploads", "off")
        await until_equal(lambda: upload(edge, 101), 200)


async def test_a_domains_response_policy_of_the_command_line_is_carried_by_its_responses(
    edge: EdgeProcess, database: Database, dsn: str, tmp_path: Path
) -> None:
    env = environment(tmp_path, DATABASE_URL=dsn, ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8")

    async def state(policy: str) -> None:
        arguments = ("domain", "power", DOMAIN, "--application", "app", "--response-policy", policy)
        done = await asyncio.to_thread(run, *arguments, env=env)
        assert done.returncode == 0, done.stderr

    async def carries_it() -> bool:
        reader, writer = await asyncio.open_connection("127.0.0.1", edge.http)
        try:
            writer.write(f"GET / HTTP/1.1\r\nHost: {DOMAIN}\r\nConnection: close\r\n\r\n".encode())
            head = (await reader.read(-1)).partition(b"\r\n\r\n")[0]
        finally:
            writer.close()
        return b"\r\nX-Frame-Options: DENY" in head

    async with an_echo() as origin:
        await power(database, origin)
        await edge.start()
        await until_equal(carries_it, False)
        await state('{"fields": {"X-Frame-Options": "DENY"}}')
        await until_equal(carries_it, True)
        await state("{}")
        await until_equal(carries_it, False)
