"""Postgres servers of our own, for runs and tests that need a primary with standbys.

Each listens on loopback and trusts every client; none flushes to disk. Owns its processes and data below the directory
that it is given, which the server's user must be able to reach.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from bench.lab.ports import unreserved_ports
from common.errors import OperatorError
from common.host_ports import HostPort
from common.postgres import account as accounts
from common.postgres import binaries
from common.postgres.cluster import ENVIRONMENT, USER, reported_status
from common.processes import UnixAccount, spawn

_SETTINGS = {
    "wal_level": "replica",
    "hot_standby_feedback": "on",
    "shared_buffers": "64MB",
    "fsync": "off",
    "full_page_writes": "off",
    "unix_socket_directories": "",
    "max_wal_senders": "10",
    "wal_keep_size": "256MB",
    "wal_receiver_status_interval": "1s",
    "wal_retrieve_retry_interval": "200ms",
}


class PostgresServer:
    """One server: a primary, or a standby made from one. Created and stopped by its user."""

    def __init__(self, home: Path, address: HostPort | None = None, *, max_connections: int = 200) -> None:
        """Prepare `home`. `address`: a free port of loopback where none is given.

        Raises: `OperatorError` where no user can run Postgres.
        """
        home.mkdir(parents=True, exist_ok=True)
        self.address = address or HostPort("127.0.0.1", unreserved_ports(1)[0])
        self.data = home / "data"
        self.log = home / "postgres.log"
        self._home = home
        self._settings = {**_SETTINGS, "max_connections": str(max_connections)}
        self._account: UnixAccount | None = accounts.choose(self.data)
        self._programs = binaries.find(self._account)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        """The address for clients."""
        return f"postgresql://{USER}@{self.address}/postgres"

    @property
    def pid(self) -> int:
        """The server's first process."""
        assert self._process is not None, "it runs"
        return self._process.pid

    def create(self) -> None:
        """Make an empty cluster.

        Raises: `OperatorError`.
        """
        self._make_directory()
        self._run(
            [
                str(self._programs.initdb),
                f"--pgdata={self.data}",
                f"--username={USER}",
                "--auth=trust",
                "--encoding=UTF8",
                "--no-locale",
                "--no-sync",
                "--no-instructions",
            ],
            account=self._account,
        )

    def copy_from(self, primary: PostgresServer) -> None:
        """Make a standby's cluster from a primary that runs.

        Raises: `OperatorError`.
        """
        self._make_directory()
        program = binaries.client_program("pg_basebackup")
        source = (
            f"host={primary.address.host} port={primary.address.port} user={USER} application_name={self._home.name}"
        )
        self._run([program, "-D", str(self.data), "-d", source, "-c", "fast", "--no-sync", "-R", "-X", "stream"])
        if self._account is not None:
            for path in (self.data, *self.data.rglob("*")):
                os.chown(path, self._account.uid, self._account.gid, follow_symlinks=False)

    def start(self) -> None:
        """Start it, and return at once."""
        settings = self._settings | {"listen_addresses": self.address.host, "port": str(self.address.port)}
        (self.data / "postmaster.pid").unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = spawn(
                [str(self._programs.postgres), "-D", str(self.data)]
                + [part for name, value in settings.items() for part in ("-c", f"{name}={value}")],
                env=ENVIRONMENT,
                account=self._account,
                cwd="/",
                stdout=log,
                stderr=log,
                death_signal=signal.SIGQUIT,
            )

    def is_ready(self) -> bool:
        """Return whether it accepts connections.

        Raises: `OperatorError` when it has ended.
        """
        assert self._process is not None, "it was started"
        if self._process.poll() is not None:
            raise OperatorError(f"Postgres did not start: see {self.log}")
        return reported_status(self.data, self._process.pid) == "ready"

    def stop(self, number: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once, or as `number` says."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait()
            self._process = None

    def _make_directory(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(mode=0o700)
        if self._account is not None:
            os.chown(self.data, self._account.uid, self._account.gid)

    def _run(self, command: list[str], account: UnixAccount | None = None) -> None:
        with self.log.open("ab") as log:
            status = spawn(command, env=ENVIRONMENT, account=account, cwd="/", stdout=log, stderr=log).wait()
        if status != 0:
            raise OperatorError(f"{Path(command[0]).name} failed: see {self.log}")
