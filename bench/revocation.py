"""``python -m bench.revocation``: every certificate revoked by the CA, and each replaced while visitors come.

Against Pebble, through three edges and two monitors, everything real and on this machine. Domains are secured; the CA
revokes all their certificates; `frontage certificate replace --serials FILE` replaces them. Half way a monitor and the
command die by SIGKILL, and are started again. Visitors ask all the time, each over a new connection. The table is also
written to ``bench/output/revocation.json``. Needs Debian's ``pebble``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import signal
import ssl
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cryptography import x509
from rich.console import Console

from bench import output
from bench.certificate_world import CertificateWorld, certificate_world
from bench.certificates import CertificateFigure, figures_table, pebble_orders, secure_all
from bench.demo.walk_clients import NoAnswer
from bench.lab.pebble import is_installed
from bench.pinned import module
from common import logs
from common.clock import SystemClock
from common.db.revocations import REASONS
from common.errors import DatabaseUnavailable, FrontageError, OperatorError
from common.processes import loop_factory
from monitor.certificates.acme.opening import open_acme
from monitor.certificates.issuer import Issued

_VISITORS = 6
_AT_ONCE = 4
_EDGES = 3
_DEADLINE_SECONDS = 3600.0
_SEEN_AT_EDGES = 100


@dataclass(slots=True)
class Visits:
    """The requests of visitors so far, and what those that failed got."""

    asked: int = 0
    failures: list[str] = field(default_factory=list)


def main() -> None:
    """Run the drill and print its figures; exit with 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.revocation", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=1000, help="whose certificates are revoked (1000)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where the database is (/var/tmp)")
    arguments = parser.parse_args()
    if not is_installed():
        sys.exit("bench.revocation: pebble is not installed: `apt-get install pebble`")
    console = Console(soft_wrap=True)
    logs.configure("bench", level="warning")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(_drill(console, arguments.domains, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.revocation: {error}")
    console.print(figures_table("A mass revocation", figures))
    console.print(f"written to {output.write('revocation', {'figures': [asdict(each) for each in figures]})}")
    sys.exit(0 if all(each.met is not False for each in figures) else 1)


async def _drill(console: Console, count: int, within: Path) -> list[CertificateFigure]:
    domains = [f"shop.crowd{number}.example" for number in range(count)]
    with tempfile.TemporaryDirectory(prefix="frontage-revocation-", dir=within, ignore_cleanup_errors=True) as name:
        async with certificate_world(Path(name), edges=_EDGES, through_faulty_ca=False) as world:
            console.print(f"securing {count:,} domains")
            await secure_all(world, domains)
            before, orders_before = await _serials(world), pebble_orders(world)
            console.print("revoking their certificates")
            await _revoke_all(world)
            visits = Visits()
            visiting = [asyncio.create_task(_visit(world, domains, visits)) for _ in range(_VISITORS)]
            listed = Path(name) / "revoked.txt"
            listed.write_text("".join(f"{serial}\n" for serial in before.values()))
            begun_at = time.monotonic()
            deaths = await _replace(world, listed, count)
            seconds = time.monotonic() - begun_at
            for each in visiting:
                each.cancel()
            await asyncio.gather(*visiting, return_exceptions=True)
            return await _figures(world, before, visits, seconds, pebble_orders(world) - orders_before, deaths)


async def _visit(world: CertificateWorld, domains: list[str], visits: Visits) -> None:
    visitors = [world.visitor(edge) for edge in range(_EDGES)]
    while True:
        domain = random.choice(domains)
        visits.asked += 1
        try:
            answer = await random.choice(visitors).get(domain)
            if answer.status != 200:
                visits.failures.append(f"{domain} answered {answer.status}")
        except NoAnswer as error:
            visits.failures.append(str(error))


async def _serials(world: CertificateWorld) -> dict[str, str]:
    """Return the serial number of each domain's certificate in service."""
    async with world.database.connection() as connection:
        rows = await connection.fetch("select domain, serial from certificates where released_at is null")
    return {row["domain"]: row["serial"] for row in rows}


async def _revoke_all(world: CertificateWorld) -> None:
    """Have the CA revoke everything, as it would after a mistake of its own."""
    async with world.database.connection() as connection:
        rows = await connection.fetch("select issuer, chain from certificates where released_at is null")
    left = iter([Issued(row["issuer"], row["chain"]) for row in rows])
    async with open_acme(world.monitors[0].settings, world.database, world.keyring, SystemClock()) as authority:

        async def revoke() -> None:
            for issued in left:
                await authority.revoke(issued, REASONS["cessationOfOperation"])

        async with asyncio.TaskGroup() as revoking:
            for _ in range(_AT_ONCE):
                revoking.create_task(revoke())


async def _replace(world: CertificateWorld, listed: Path, count: int) -> int:
    """Run the command to its end, with a death of a monitor and of itself half way. Return the number of deaths.

    Raises: `OperatorError` when it fails, or takes too long.
    """
    argv = module("api.cli", "certificate", "replace", "--serials", str(listed))
    with (listed.parent / "replace.log").open("ab") as log:
        command = await asyncio.create_subprocess_exec(*argv, env=world.api.environ, stdout=log, stderr=log)
        try:
            async with asyncio.timeout(_DEADLINE_SECONDS):
                await _until_replaced(world, count // 2)
                command.send_signal(signal.SIGKILL)
                await command.wait()
                await world.monitors[0].kill()
                await world.monitors[0].start()
                command = await asyncio.create_subprocess_exec(*argv, env=world.api.environ, stdout=log, stderr=log)
                if await command.wait() != 0:
                    raise OperatorError(f"the command failed: see {log.name}")
                await _until_replaced(world, count)
        finally:
            if command.returncode is None:
                command.kill()
    return 2


async def _until_replaced(world: CertificateWorld, count: int) -> None:
    """Wait until so many replacements are live."""
    replaced = 0
    while replaced < count:
        await asyncio.sleep(0.2)
        with suppress(DatabaseUnavailable):  # the machine has much to do
            async with world.database.connection() as connection:
                replaced = await connection.fetchval(
                    "select count(*) from orders join certificates using (domain)"
                    " where issued_kind = 'renewal' and live_at >= issued_at and replace_requested_at is null"
                )


async def _figures(
    world: CertificateWorld, before: dict[str, str], visits: Visits, seconds: float, ordered: int, deaths: int
) -> list[CertificateFigure]:
    count, after = len(before), await _serials(world)
    replaced = sum(after.get(domain) != serial for domain, serial in before.items())
    statuses = [await world.pebble.certificate_status(int(serial, 16)) for serial in after.values()]
    valid = sum(each["Status"] == "Valid" for each in statuses)
    revoked = [await world.pebble.certificate_status(int(serial, 16)) for serial in before.values()]
    were_revoked = sum(each["Status"] == "Revoked" for each in revoked)
    some = random.sample(sorted(after.items()), min(count, _SEEN_AT_EDGES))
    served = sum([await _serves(world, edge, *each) for each in some for edge in range(_EDGES)])
    return [
        CertificateFigure(
            "certificates revoked, and replaced by valid ones",
            f"{were_revoked:,}, {replaced:,}, {valid:,} valid, {deaths} deaths in between",
            "each",
            count == were_revoked == replaced == valid,
        ),
        CertificateFigure("… in", f"{seconds:.0f} s, {count / seconds * 60:,.0f} a minute"),
        CertificateFigure(
            "… orders that Pebble made for it", f"{ordered:,}", "one each, and one a death", ordered <= count + deaths
        ),
        CertificateFigure(
            f"… served with the new one by each of {_EDGES} edges",
            f"{served:,} of {len(some) * _EDGES:,}",
            "all",
            served == len(some) * _EDGES,
        ),
        CertificateFigure(
            "requests of visitors meanwhile, and failed ones",
            f"{visits.asked:,}, {len(visits.failures)} failed {visits.failures[:1] or ''}",
            "none failed",
            not visits.failures,
        ),
    ]


async def _serves(world: CertificateWorld, edge: int, domain: str, serial: str) -> bool:
    """Return whether the edge presents the certificate with that serial number."""
    context = ssl.create_default_context(cafile=world.ca_file)
    port = world.edges[edge].settings.edge_https.port
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=domain)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return f"{x509.load_der_x509_certificate(shown).serial_number:x}" == serial


if __name__ == "__main__":
    main()
