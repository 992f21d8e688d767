"""Three Postgres servers under Patroni, with etcd: a primary, and standbys that take over.

Takes Patroni from this environment (``patroni[etcd3,psycopg]``) or Debian's. Which servers stream is asked at Postgres,
for Patroni's word for it differs between its versions.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp

from bench.cluster.network import Machine, run_command
from bench.process_tree import descendants
from common.db.session import open_session
from common.errors import DatabaseUnavailable, OperatorError
from common.processes import spawn

_READY_SECONDS = 120.0
_ANSWER_SECONDS = 2.0
_POSTGRES = Path("/usr/lib/postgresql")
_PROGRAMS = ("etcd", "patroni", "haproxy", "pebble", "setpriv")
_USER = "postgres"
_STREAMING = "select count(*) from pg_stat_replication where state = 'streaming' and application_name = any($1)"


def missing_programs() -> list[str]:
    """Return the names of the programs that a run needs and this machine lacks."""
    missing = [name for name in _PROGRAMS if _find(name) is None]
    return missing + ([] if _binaries() else ["postgresql"])


@dataclass
class Member:
    """One server: a Patroni, which starts and ends its Postgres."""

    machine: Machine
    port: int
    rest_port: int
    home: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.machine.name

    @property
    def data(self) -> Path:
        """The data directory of its Postgres."""
        return self.home / "data"

    @property
    def url(self) -> str:
        """The address of Patroni's HTTP interface."""
        return f"http://{self.machine.address}:{self.rest_port}"

    @property
    def dsn(self) -> str:
        """The address of this Postgres alone."""
        return f"postgresql://{_USER}@{self.machine.address}:{self.port}/postgres"

    def postmaster(self) -> int | None:
        """Return the id of its Postgres' first process, if it runs."""
        with contextlib.suppress(OSError, ValueError):
            pid = int((self.data / "postmaster.pid").read_text().split("\n", 1)[0])
            os.kill(pid, 0)
            return pid
        return None

    def start(self) -> None:
        """Start its Patroni."""
        account = () if os.geteuid() else ("setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups")
        with (self.home.parent / f"{self.name}.log").open("ab") as log:
            self.process = spawn(
                [*self.machine.within, *account, _program("patroni"), str(self.home.parent / f"{self.name}.json")],
                env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(self.home)},
                cwd="/",
                stdout=log,
                stderr=log,
            )

    def signal(self, number: signal.Signals, *, is_patroni_too: bool = True) -> None:
        """Signal every process of its Postgres, and Patroni's."""
        roots = [self.postmaster(), self.process.pid if is_patroni_too and self.process else None]
        for pid in [pid for root in roots if root is not None for pid in descendants(root)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def power_off(self) -> None:
        """End all of its processes at once, as a loss of power does."""
        self.signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
            self.process = None


@dataclass
class PatroniCluster:
    """The servers. Made by `running_patroni`."""

    members: list[Member]
    session: aiohttp.ClientSession
    etcd: subprocess.Popen[bytes]
    etcd_url: str

    @property
    def dsn(self) -> str:
        """The address of all of them, for roles."""
        return dsn_of([f"{member.machine.address}:{member.port}" for member in self.members])

    async def find_primary(self) -> Member | None:
        """Return the server that Patroni says is the primary."""
        for member in self.members:
            with contextlib.suppress(aiohttp.ClientError, TimeoutError, OSError):
                async with self.session.get(f"{member.url}/primary") as answer:
                    if answer.status == 200:
                        return member
        return None

    async def until_primary(self) -> Member:
        """Wait for a primary.

        Raises: `OperatorError`.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while (member := await self.find_primary()) is None:  # noqa: ASYNC110 - it must be asked
                    await asyncio.sleep(0.2)
                return member
        raise OperatorError("Patroni has no primary")

    async def until_whole(self) -> Member:
        """Wait until all standbys stream from the primary, and return the primary.

        Raises: `OperatorError`.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_READY_SECONDS):
                while True:
                    primary = await self.until_primary()
                    with contextlib.suppress(DatabaseUnavailable):
                        if (
                            await ask(primary, _STREAMING, [each.name for each in self.members])
                            == len(self.members) - 1
                        ):
                            return primary
                    await asyncio.sleep(0.2)
        raise OperatorError("the standbys do not stream")

    async def switch_over(self) -> None:
        """Have another server become the primary, in order; an answer that it cannot be is no error."""
        primary = await self.until_primary()
        timeout = aiohttp.ClientTimeout(total=60)
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            url, body = f"{primary.url}/switchover", {"leader": primary.name}
            async with self.session.post(url, json=body, timeout=timeout) as answer:
                await answer.read()

    async def back_up(self, target: Path) -> None:
        """Copy the primary's data directory to `target`, as its physical backup.

        Raises: `OperatorError`.
        """
        primary = await self.until_primary()
        program = f"{_binaries()}/pg_basebackup"
        await asyncio.to_thread(run_command, program, "--checkpoint=fast", "-D", str(target), "-d", primary.dsn)

    async def restore(self, backup: Path, member: Member) -> None:
        """Put that backup in the place of everything, as an operator does who has nothing else left.

        All servers end, what Patroni remembers in etcd goes, and the others copy the one that has the backup.

        Raises: `OperatorError`.
        """
        for each in self.members:
            each.power_off()
            await asyncio.to_thread(shutil.rmtree, each.data)
        await asyncio.to_thread(run_command, "cp", "-a", f"{backup}/", str(member.data))
        if os.geteuid() == 0:
            await asyncio.to_thread(run_command, "chown", "-R", _USER, str(member.data))
        await self._forget()
        member.start()
        await self.until_primary()
        for each in self.members:
            if each is not member:
                each.start()

    async def _forget(self) -> None:
        """Remove all that Patroni keeps in etcd (its JSON interface takes the first and the last key in Base64)."""
        first, beyond = (base64.b64encode(key).decode() for key in (b"/service/frontage/", b"/service/frontage0"))
        url, body = f"{self.etcd_url}/v3/kv/deleterange", {"key": first, "range_end": beyond}
        async with self.session.post(url, json=body) as answer:
            if answer.status != 200:
                raise OperatorError(f"etcd: {answer.status} {await answer.text()}")


async def ask(member: Member, query: str, *arguments: Any) -> Any:
    """Return the value of a query at this server alone.

    Raises: `DatabaseUnavailable`.
    """
    session = await open_session(member.dsn + "?target_session_attrs=any", "frontage bench")
    try:
        return await session.fetchval(query, *arguments)
    finally:
        session.terminate()


def dsn_of(addresses: Sequence[str]) -> str:
    """Return the address of several servers, for roles. `addresses`: of each, ``host:port``."""
    return f"postgresql://{_USER}@{','.join(addresses)}/postgres"


@contextlib.asynccontextmanager
async def running_patroni(
    directory: Path, lab: Machine, machines: Sequence[Machine], ports: Sequence[int], *, is_synchronous: bool
) -> AsyncIterator[PatroniCluster]:
    """Run etcd in the lab, and a server on each machine, for the block.

    `directory`: Postgres' user can enter it. `ports`: four free ones: etcd's two, Postgres' and Patroni's.

    Raises: `OperatorError`.
    """
    client, peer, port, rest_port = ports
    etcd = _start_etcd(directory, lab, client, peer)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS)) as session:
        members = [Member(machine, port, rest_port, directory / machine.name) for machine in machines]
        cluster = PatroniCluster(members, session, etcd, f"http://{lab.address}:{client}")
        try:
            for member in members:
                member.home.mkdir(exist_ok=True)
                if os.geteuid() == 0:
                    shutil.chown(member.home, _USER, _USER)
                path = directory / f"{member.name}.json"
                path.write_text(
                    json.dumps(_configuration(member, f"{lab.address}:{client}", is_synchronous=is_synchronous))
                )
                path.chmod(0o644)
                member.start()
            await cluster.until_whole()
            yield cluster
        finally:
            for member in members:
                member.power_off()
            etcd.kill()
            etcd.wait()


def _start_etcd(directory: Path, lab: Machine, client: int, peer: int) -> subprocess.Popen[bytes]:
    with (directory / "etcd.log").open("ab") as log:
        return spawn(
            [
                _program("etcd"),
                "--unsafe-no-fsync",
                f"--data-dir={directory / 'etcd'}",
                *(f"--{name}-client-urls=http://{lab.address}:{client}" for name in ("listen", "advertise")),
                f"--listen-peer-urls=http://{lab.address}:{peer}",
                f"--initial-advertise-peer-urls=http://{lab.address}:{peer}",
                f"--initial-cluster=default=http://{lab.address}:{peer}",
            ],
            env={"PATH": os.environ["PATH"]},
            cwd="/",
            stdout=log,
            stderr=log,
        )


def _configuration(member: Member, etcd: str, *, is_synchronous: bool) -> dict[str, Any]:
    """Return Patroni's settings; the shortest time to live that it allows is 20 seconds."""
    rest, postgres = f"{member.machine.address}:{member.rest_port}", f"{member.machine.address}:{member.port}"
    return {
        "scope": "frontage",
        "name": member.name,
        "restapi": {"listen": rest, "connect_address": rest},
        "etcd3": {"hosts": etcd},
        "bootstrap": {
            "dcs": {
                "ttl": 20,
                "loop_wait": 1,
                "retry_timeout": 3,
                "primary_start_timeout": 0,
                "maximum_lag_on_failover": 1 << 20,
                "synchronous_mode": is_synchronous,
                "synchronous_node_count": 2,  # an edge that follows a standby may not see what the other has not
                "postgresql": {"use_pg_rewind": True, "parameters": {"hot_standby_feedback": "on"}},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}],
        },
        "postgresql": {
            "listen": postgres,
            "connect_address": postgres,
            "data_dir": str(member.data),
            "pgpass": str(member.home / "pgpass"),
            "bin_dir": _binaries(),
            "authentication": {
                "superuser": {"username": _USER},
                "replication": {"username": "replicator"},
                "rewind": {"username": _USER},
            },
            "parameters": {
                "unix_socket_directories": "",
                "max_connections": 100,
                "shared_buffers": "64MB",
                "min_wal_size": "32MB",
                "max_wal_size": "96MB",
                "wal_keep_size": "64MB",
                "wal_log_hints": "on",
                "wal_receiver_timeout": "5s",
                "wal_sender_timeout": "5s",
            },
            "pg_hba": ["host all all all trust", "host replication all all trust"],
        },
    }


def _find(program: str) -> str | None:
    beside = Path(sys.executable).with_name(program)
    return str(beside) if beside.exists() else shutil.which(program)


def _program(name: str) -> str:
    found = _find(name)
    if found is None:
        raise OperatorError(f"{name} is not installed")
    return found


def _binaries() -> str | None:
    """Return the directory of the newest Postgres."""
    found = sorted(_POSTGRES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return str(found[-1].parent) if found else None
