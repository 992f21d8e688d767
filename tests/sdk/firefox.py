"""Debian's Firefox over WebDriver BiDi (W3C), as much of it as one page needs: a second engine beside Chromium."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import aiohttp

PROGRAM = "firefox-esr"
_LISTENING = re.compile(rb"WebDriver BiDi listening on (ws://\S+)")
_START_SECONDS = 90
_COMMAND_SECONDS = 150


class Firefox:
    """Made by `started`, which ends it. One page; commands one after the other."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._sent = 0
        self._page = ""

    @classmethod
    @contextlib.asynccontextmanager
    async def started(cls, home: Path) -> AsyncIterator[Self]:
        profile = home / "profile"
        profile.mkdir(parents=True)
        process = await asyncio.create_subprocess_exec(
            PROGRAM,
            *("--headless", "--no-remote", "--remote-debugging-port=0", "--profile", str(profile)),
            env={"HOME": str(home), "PATH": "/usr/bin:/bin", "MOZ_CRASHREPORTER_DISABLE": "1"},
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stderr is not None
            async with asyncio.timeout(_START_SECONDS):
                while not (found := _LISTENING.search(await process.stderr.readline())):
                    assert process.returncode is None
            url = f"{found[1].decode()}/session"
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(url, max_msg_size=0) as socket,
            ):
                firefox = cls(socket)
                await firefox._command("session.new", capabilities={})
                tree = await firefox._command("browsingContext.getTree")
                firefox._page = tree["contexts"][0]["context"]
                yield firefox
        finally:
            process.kill()
            await process.communicate()

    async def open(self, url: str) -> None:
        await self._command("browsingContext.navigate", context=self._page, url=url, wait="complete")

    async def evaluate(self, expression: str) -> Any:
        """What the expression, or its promise, comes to; as JSON can have it."""
        answer = await self._command(
            "script.evaluate",
            expression=f"Promise.resolve({expression}).then(value => JSON.stringify(value ?? null))",
            target={"context": self._page},
            awaitPromise=True,
            userActivation=True,
        )
        assert answer["type"] == "success", answer
        return json.loads(answer["result"]["value"])

    async def _command(self, method: str, **parameters: Any) -> Any:
        self._sent += 1
        await self._socket.send_json({"id": self._sent, "method": method, "params": parameters})
        async with asyncio.timeout(_COMMAND_SECONDS):
            while True:
                message = await self._socket.receive_json()
                if message.get("id") == self._sent:
                    assert message["type"] == "success", message
                    return message["result"]
