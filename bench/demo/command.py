"""`frontage demo`: everything on one machine, with a lab for a world, and a walk through it.

This module presents; `stage` starts and ends the processes, `walk` does the steps.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from api.cli.printing import AsJson, print_json

if TYPE_CHECKING:
    from rich.console import Console

    from bench.demo.stage import Stage
    from bench.demo.walk import Tell, Walk
    from common.settings import Settings

_DOMAIN = "shop"


def demo(
    check: Annotated[bool, typer.Option("--check", help="Walk by itself, then exit 0, or 1 if a step failed.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the main job on this machine, with no network: a partner's page on a customer's domain, over HTTPS."""
    try:
        asyncio.run(_until_signalled(check=check, as_json=as_json))
    except asyncio.CancelledError:
        raise typer.Exit(1 if check else 0) from None  # an interrupted check has verified nothing


async def _until_signalled(*, check: bool, as_json: bool) -> None:
    """Run the demo; a first signal ends everything in order, a second one at once."""
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    await _run(_Data() if as_json else _Words(), check=check)


async def _run(output: _Output, *, check: bool) -> None:
    """Start everything, walk, and then end (a check) or stay until cancelled."""
    from bench.demo.kept_root import place_kept_root
    from bench.demo.stage import set_up, state_directory

    start = time.perf_counter()
    with state_directory(os.environ) as state_dir:
        is_kept = "FRONTAGE_STATE_DIR" in os.environ
        root = None if check or is_kept else place_kept_root(os.environ, state_dir)
        async with set_up(os.environ, state_dir) as stage:
            output.tell("lab, database, API, monitor, edge", time.perf_counter() - start, "ready")
            await _walk(stage, output.tell, check=check)
            seconds = time.perf_counter() - start
            if check:
                output.passed(seconds)
                return
            domain = _domain(check=False)
            with stage.described(domain).announced(state_dir):
                output.present(stage, domain, seconds, is_kept=is_kept, root=root)
                stage.pass_output_on()  # an access log on standard output, behind what is shown above
                await asyncio.Event().wait()


async def _walk(stage: Stage, tell: Tell, *, check: bool) -> None:
    """Sign in and walk through the service: the whole walk for a check, else until a domain is served."""
    from bench.demo.walk import Walk
    from bench.demo.walk_clients import PartnerClient, VisitorClient

    visitor = VisitorClient(stage.edge_https_host, stage.settings.edge_https.port, stage.ca_file)
    async with PartnerClient.at(stage.settings.base_url, stage.application_id) as partner:
        domain = _domain(check=check)
        walk = Walk(partner, visitor, domain, stage.lab, tell)
        await walk.sign_in(stage.client_secret)
        if check:
            await _check(walk, has_powerdns=bool(stage.lab.powerdns))
            return
        if not await walk.is_powered():  # it is on a kept state directory
            await walk.find_eligible()
        await walk.power()
        await walk.serve()


async def _check(walk: Walk, *, has_powerdns: bool) -> None:
    """Take the steps of a check in order."""
    await walk.find_eligible()
    await walk.power()
    await walk.serve()
    await walk.check_forwarding()
    await walk.check_root_path()
    await walk.check_status()
    await walk.move()
    await walk.remove()
    await walk.check_domains()
    await walk.open_modal()
    await walk.plan()
    await walk.apply()
    await walk.finish()
    await walk.serve_connected()
    await walk.undo()
    await walk.consent()
    await walk.finish_secured()
    await walk.serve_secured()
    if has_powerdns:
        await walk.change_powerdns()


def _domain(*, check: bool) -> str:
    """Return the domain to walk with; a fresh name for a check, since one name may be powered five times a day only."""
    from bench.demo.stage import CUSTOMER

    return f"{_DOMAIN}-{secrets.token_hex(4)}.{CUSTOMER}" if check else f"{_DOMAIN}.{CUSTOMER}"


# Output ------------------------------------------------------------------------------------------------


class _Output(Protocol):
    """Shows the walk: `tell` after each step, then `passed` after a check, or `present` before a visit."""

    def tell(self, step: str, seconds: float, seen: str) -> None:
        """Show a step that is done."""

    def passed(self, seconds: float) -> None:
        """Show that all steps of a check passed."""

    def present(self, stage: Stage, domain: str, seconds: float, *, is_kept: bool, root: Path | None) -> None:
        """Show where everything is reached."""


class _Data:
    """Shows the walk as one JSON document at its end."""

    def __init__(self) -> None:
        self._steps: list[dict[str, str | float]] = []

    def tell(self, step: str, seconds: float, seen: str) -> None:
        self._steps.append({"step": step, "seconds": round(seconds, 3), "seen": seen})

    def passed(self, seconds: float) -> None:
        print_json({"seconds": round(seconds, 3), "steps": self._steps})

    def present(self, stage: Stage, domain: str, seconds: float, *, is_kept: bool, root: Path | None) -> None:
        port = stage.settings.edge_https.port
        addresses = {
            "url": f"https://{domain}:{port}/",
            "edge": f"{stage.edge_https_host}:{port}",
            "caFile": stage.ca_file,
            "partnerPage": f"{stage.lab.partner}/",
            "signInOnce": stage.sign_in_link,
            "api": stage.settings.base_url,
            "applicationId": stage.application_id,
            "zone": f"{stage.lab.zone}/",
            "webhooks": f"{stage.lab.sink}/",
            "stateDir": stage.settings.state_dir,
            "isKept": is_kept,
        }
        print_json({"seconds": round(seconds, 3), **addresses, "steps": self._steps})


class _Words:
    """Shows the walk as text."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(soft_wrap=True, highlight=False)

    def tell(self, step: str, seconds: float, seen: str) -> None:
        self._console.print(f"[green]✓[/] {step:<36}{_duration(seconds):>9}  [dim]{seen}[/]")

    def passed(self, seconds: float) -> None:
        self._console.print(f"[bold green]All steps passed[/] in {seconds:.2f} s.")

    def present(self, stage: Stage, domain: str, seconds: float, *, is_kept: bool, root: Path | None) -> None:
        _present(self._console, stage, domain, seconds, is_kept=is_kept, root=root)


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _command(name: str) -> str | None:
    """Return how to call a program of this installation from the reader's shell; None when it is not installed.

    The shell may not have the program's folder on its path.
    """
    beside, found = Path(sys.executable).with_name(name), shutil.which(name)
    if beside.exists() and found != str(beside):
        return shlex.quote(str(beside))
    return name if found else None


def _load() -> tuple[str, str]:
    """Return a title and a command. The reader may have installed neither the program nor the clone's benches."""
    command, benches = _command("locust"), Path(__file__).parents[1]
    is_clone = (benches / "locustfile.py").exists()
    title = "Load" if command and is_clone else "Load, after `pip install -e '.[bench]'` in the clone"
    return title, f"{command or 'locust'} -f {shlex.quote(str(benches)) if is_clone else 'bench/'}"


def _present(console: Console, stage: Stage, domain: str, seconds: float, *, is_kept: bool, root: Path | None) -> None:
    settings = stage.settings
    url = f"https://{domain}:{settings.edge_https.port}/"
    load_title, load = _load()
    here = f"FRONTAGE_STATE_DIR={shlex.quote(str(settings.state_dir))}"
    console.print(f"\n[bold]Ready[/] in {seconds:.1f} s: {stage.lab.origin}/a, rendered on [bold]{domain}[/].\n")
    for title, text in (
        ("Try it", curl_line(stage.edge_https_host, settings.edge_https.port, domain, stage.ca_file)),
        ("In a browser", url),
        ("A partner's page with the connect modal", f"{stage.lab.partner}/"),
        (
            "The CA's root, to trust on this machine" + (", the same for every demo" if root else ""),
            _trust(root or stage.ca_file),
        ),
        ("The dashboard, signed in once by this link", stage.sign_in_link),
        ("The handbook, with a quick start", f"{settings.base_url}/docs/quick-start"),
        ("The API, with a form for each call", f"{settings.base_url}/docs/api  applicationId: {stage.application_id}"),
        ("A token for it", f"{here} {_command('frontage') or 'frontage'} token {stage.application_id}"),
        ("The customers' DNS zone, to change with PUT and DELETE", f"curl {stage.lab.zone}/"),
        *_challenge_zone(settings),
        ("The webhooks it has received", f"curl {stage.lab.sink}/"),
        (load_title, f"{here} {load}"),
    ):
        console.print(title, style="bold", markup=False)  # paths and extras have brackets
        console.print(f"  {text}", markup=False)
    note = "stays for the next demo" if is_kept else "goes with it; set FRONTAGE_STATE_DIR to keep it"
    console.print(f"\nCtrl-C ends everything; the state in {settings.state_dir} {note}.", markup=False)


def _challenge_zone(settings: Settings) -> list[tuple[str, str]]:
    """Return the title and a question of the zone that edges answer, where one does."""
    if settings.edge_dns is None:
        return []
    host, port = settings.edge_dns.host, settings.edge_dns.port
    question = f"dig @{host} -p {port} {settings.acme_dns_zone} SOA"
    return [("The zone in which domains delegate their challenge, answered by the edge", question)]


def curl_line(host: str, port: int, domain: str, ca_file: Path) -> str:
    """Return the curl command that requests the domain.

    curl resolves names under localhost by itself, but only to loopback.
    """
    is_loopback = host in ("127.0.0.1", "::1", "localhost")
    resolve = [] if is_loopback else ["--resolve", f"{domain}:{port}:{host}"]
    return shlex.join(["curl", "--cacert", str(ca_file), *resolve, f"https://{domain}:{port}/"])


def _trust(ca_file: Path) -> str:
    """Return how to trust the CA's root on this machine, and how to undo that."""
    return (
        f"{ca_file}\n"
        "  browsers: import it under Settings → Certificates → Authorities; Debian and Ubuntu, as root:\n"
        f"  cp {shlex.quote(str(ca_file))} /usr/local/share/ca-certificates/frontage.crt && update-ca-certificates\n"
        "  to remove it afterwards: delete it there in the browser; Debian and Ubuntu, as root:\n"
        "  rm /usr/local/share/ca-certificates/frontage.crt && update-ca-certificates --fresh"
    )
