"""`frontage service print` and `install`."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from api.cli.printing import AsJson, print_result
from api.cli.service import manifests, units
from api.cli.service.units import ENVIRONMENT_FILE
from api.cli.service.workloads import ROLES, Role
from common.errors import OperatorError

app = typer.Typer(help="What runs the roles on a server: systemd units, a container file.", no_args_is_help=True)

Roles = Annotated[list[Role] | None, typer.Argument(metavar="ROLE", help="edge, api, monitor; without any, all three.")]
_BALANCED_HELP = "Edges as a deployment behind a balancer with PROXY headers, in place of one on each node's ports."
Workers = Annotated[int | None, typer.Option("--edge-workers", help="Workers of the edge; as many as cores.", min=1)]


@app.command("print")
def print_(
    roles: Roles = None,
    workers: Workers = None,
    container: Annotated[bool, typer.Option("--container", help="Print a container file instead.")] = False,
    compose: Annotated[bool, typer.Option("--compose", help="Print a compose file of all roles instead.")] = False,
    kubernetes: Annotated[bool, typer.Option("--kubernetes", help="Print Kubernetes manifests instead.")] = False,
    balanced: Annotated[bool, typer.Option("--balanced", help=_BALANCED_HELP)] = False,
    image: Annotated[str, typer.Option(help="The image that containers run.")] = "frontage:latest",
    as_json: AsJson = False,
) -> None:
    """Print the files that `install` writes, or files for containers."""
    if container + compose + kubernetes > 1:
        raise typer.BadParameter("--container, --compose and --kubernetes print one file each: give one of them")
    if container or compose or kubernetes:
        name, text, content = _container_file(image, compose=compose, kubernetes=kubernetes, balanced=balanced)
        print_result({name: content}, text.rstrip("\n"), as_json=as_json)
        return
    files = _files(roles, workers)
    print_result(files, "\n".join(f"# {path}\n{text}" for path, text in files.items()), as_json=as_json)


def _container_file(image: str, *, compose: bool, kubernetes: bool, balanced: bool) -> tuple[str, str, Any]:
    """Return a file's name, its text, and its content as JSON."""
    if kubernetes:
        documents = manifests.kubernetes(image, is_balanced=balanced)
        return "kubernetes", manifests.render_kubernetes(image, is_balanced=balanced), documents
    if compose:
        return "compose", manifests.render_compose(image), manifests.compose(image)
    return "Containerfile", units.container(), units.container()


@app.command()
def install(
    roles: Roles = None,
    workers: Workers = None,
    root: Annotated[Path, typer.Option(help="Write below this directory instead of /.")] = Path("/"),
    as_json: AsJson = False,
) -> None:
    """Write systemd units, a system user and an environment file; start nothing. Needs root."""
    try:
        written = [_write(root, path, text, 0o644) for path, text in _files(roles, workers).items()]
        environment = root / ENVIRONMENT_FILE.lstrip("/")
        if not environment.exists():
            text = f"{units.environment()}FRONTAGE_EDGE_WORKERS='{_count(workers)}'\n"
            written.append(_write(root, ENVIRONMENT_FILE, text, 0o600))
    except OSError as error:
        raise OperatorError(f"{error.filename} cannot be written ({error.strerror}): run this as root") from error
    print_result({"written": written}, "\n".join(map(str, written)), as_json=as_json)
    names = " ".join(f"frontage-{role}" for role in roles or ROLES)
    typer.echo(
        f"\nNext: write your values into {ENVIRONMENT_FILE}, then\n"
        "  systemd-sysusers && systemctl daemon-reload\n"
        f"  set -a && . {ENVIRONMENT_FILE} && FRONTAGE_STATE_DIR=/var/lib/frontage {_program()} migrate\n"
        "  chown -R frontage: /var/lib/frontage\n"
        f"  systemctl enable --now {names}",
        err=True,
    )


def _files(roles: list[Role] | None, workers: int | None) -> dict[str, str]:
    return units.units(
        _program(),
        tuple(roles or ROLES),
        workers=_count(workers),
        api_listen=os.environ.get("FRONTAGE_API_LISTEN", units.API_LISTEN),
        dns_listen=os.environ.get("FRONTAGE_EDGE_DNS") or None,
    )


def _count(workers: int | None) -> int:
    return workers or os.cpu_count() or 1


def _program() -> str:
    """Return the command that runs now, which the units will start."""
    here = Path(sys.executable).with_name("frontage")
    found = str(here) if here.exists() else shutil.which("frontage")
    if found is None:
        raise OperatorError("the command `frontage` is not installed: install the package first")
    return found


def _write(root: Path, path: str, text: str, mode: int) -> Path:
    target = root / path.lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")
    target.chmod(mode)
    return target
