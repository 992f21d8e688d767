"""``python -m bench.monitor_faults.monitoring_process CONFIGURATION``: a monitor's work for monitored domains.

It runs until it is killed, with name servers on a port of their own and short time-outs.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from ipaddress import ip_network
from pathlib import Path
from random import Random
from typing import Any

from bench.pinned import module
from common.addresses import AddressPolicy
from common.clock import SystemClock
from common.db import batches, monitored_domains
from common.db.listener import Listener
from common.db.pool import open_pool
from common.dns import Resolver
from common.host_ports import parse_host_port
from common.processes import loop_factory
from common.secrets import load_keyring
from monitor.batches.processing import Processing
from monitor.checks.checking import Checking
from monitor.claims import Runner
from monitor.webhooks.deliveries import make_runner
from monitor.webhooks.sender import Sender

INTERVAL_SECONDS = 3.0
SENDER_SECONDS = 2.0
_BATCHES_AT_ONCE = 4
_LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())


@dataclass(frozen=True, slots=True)
class MonitoringSetup:
    """The configuration of a monitoring process."""

    dsn: str
    key_file: str
    resolvers: list[str]
    authority_port: int

    def argv(self) -> list[str]:
        """Return the command line of a monitor with this configuration."""
        return module("bench.monitor_faults.monitoring_process", json.dumps(asdict(self)))


async def _work(configuration: MonitoringSetup) -> None:
    """Check, deliver and work off batches until killed."""
    clock, random = SystemClock(), Random()
    servers = list(map(parse_host_port, configuration.resolvers))
    keyring = load_keyring(Path(configuration.key_file))
    async with open_pool(configuration.dsn, size=8, application_name="frontage monitor") as database:
        sender = Sender(Resolver(servers, _LOOPBACK), _LOOPBACK, timeout_seconds=SENDER_SECONDS)
        delivering = make_runner(database, sender, keyring, clock, random)
        processing = Runner[Any](
            database, batches, Processing(database).perform, concurrency=_BATCHES_AT_ONCE, random=random
        )
        checking = Checking(
            database,
            clock,
            random,
            servers=servers,
            policy=_LOOPBACK,
            interval_seconds=INTERVAL_SECONDS,
            base_url="https://frontage.example",
            on_events=delivering.wake,
            authority_port=configuration.authority_port,
        )

        def wake() -> None:
            checking.wake()
            processing.wake()

        listener = Listener(configuration.dsn, wake, channel=monitored_domains.CHANNEL)
        await asyncio.gather(checking.run(), delivering.run(), processing.run(), listener.run())


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_work(MonitoringSetup(**json.loads(sys.argv[1]))))
