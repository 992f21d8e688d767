"""Debian's Prometheus as a process: scrapes the roles each second and evaluates hastened rules."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from bench.lab.ports import free_ports
from common.errors import OperatorError
from common.processes import exited, spawn

WAIT_SECONDS = 2
WINDOW_SECONDS = 20
_READY_SECONDS = 60.0
_POLL_SECONDS = 0.2


def hasten(rules: str) -> str:
    """Shorten each wait of the rules that is not zero to `WAIT_SECONDS`, and each window to `WINDOW_SECONDS`."""
    waiting = re.sub(r'(?m)^( *for: "?)(?!0m)\d+[smh](?="?$)', rf"\g<1>{WAIT_SECONDS}s", rules)
    return re.sub(r"\[\d+[smh]\]", f"[{WINDOW_SECONDS}s]", waiting)


def is_installed() -> bool:
    """Return whether Prometheus is installed."""
    return shutil.which("prometheus") is not None


@dataclass(frozen=True, slots=True)
class Prometheus:
    """A Prometheus that runs. Created by `running_prometheus`."""

    session: aiohttp.ClientSession

    async def firing(self) -> set[str]:
        """Return the names of the alerts that fire now."""
        async with self.session.get("/api/v1/alerts") as answer:
            alerts = (await answer.json())["data"]["alerts"]
        return {each["labels"]["alertname"] for each in alerts if each["state"] == "firing"}

    async def until_scraped(self, targets: int) -> None:
        """Wait until Prometheus scrapes that many targets.

        Raises: `TimeoutError`.
        """
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                async with self.session.get("/api/v1/targets") as answer:
                    active = (await answer.json())["data"]["activeTargets"]
                if sum(each["health"] == "up" for each in active) == targets:
                    return
                await asyncio.sleep(_POLL_SECONDS)


@contextlib.asynccontextmanager
async def running_prometheus(directory: Path, rules: str, targets: Sequence[str]) -> AsyncIterator[Prometheus]:
    """Run Prometheus for the block, with its files in `directory`, which exists. `targets` are host:port.

    Raises: `OperatorError`.
    """
    (directory / "rules.yml").write_text(hasten(rules))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [{"job_name": "frontage", "static_configs": [{"targets": list(targets)}]}],
    }
    (directory / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
    address = f"127.0.0.1:{free_ports(1)[0]}"
    argv = ["prometheus", f"--config.file={directory / 'prometheus.yml'}", f"--web.listen-address={address}"]
    log_file = directory / "prometheus.log"
    with log_file.open("ab") as log:
        environ = {"PATH": "/usr/bin:/bin"}
        process = spawn([*argv, f"--storage.tsdb.path={directory / 'tsdb'}"], env=environ, stdout=log, stderr=log)
    try:
        async with aiohttp.ClientSession(f"http://{address}", timeout=aiohttp.ClientTimeout(total=10)) as session:
            await _until_ready(session, log_file)
            yield Prometheus(session)
    finally:
        process.terminate()
        await exited(process)


async def _until_ready(session: aiohttp.ClientSession, log_file: Path) -> None:
    """Wait until Prometheus serves.

    Raises: `OperatorError`.
    """
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while True:
                with contextlib.suppress(aiohttp.ClientError):
                    async with session.get("/-/ready") as answer:
                        if answer.status == 200:
                            return
                await asyncio.sleep(_POLL_SECONDS)
    except TimeoutError as error:
        raise OperatorError(f"Prometheus does not serve: see {log_file}") from error
