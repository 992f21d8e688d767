"""The test command, ``python -m tests``: Debian packages, style, types, import directions, then every test.

Standard library only until the checks themselves run, so that it can say clearly what is missing.
``--install-packages`` first installs the Debian packages that are missing. Other arguments go to pytest:
``python -m tests tests/unit -k paths`` runs only the tests named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What tests drive as a user would: package -> the command that shows it is there.
DEBIAN_PACKAGES = {
    "chromium-headless-shell": "chromium-headless-shell",
    "curl": "curl",
    "firefox-esr": "firefox-esr",
    "knot": "knotd",
    "npm": "npm",
    "openssl": "openssl",
    "pdns-backend-sqlite3": "pdns_server",
    "pdns-server": "pdns_server",
    "pebble": "pebble",
    "pgbouncer": "pgbouncer",
    "php-cli": "php",
    "prometheus": "promtool",
    "unbound": "unbound",
}


# `.pre-commit-config.yaml` runs the same.
CHECKS = {
    "format": "ruff format --check --quiet .",
    "lint": "ruff check --quiet .",
    "types": "mypy",
    "import directions": "lint-imports --no-cache",
}
INSTALL = "--install-packages"


def main(arguments: list[str]) -> int:
    os.chdir(ROOT)
    may_install = INSTALL in arguments
    arguments = [each for each in arguments if each != INSTALL]
    provide_debian_packages(may_install=may_install)
    python = sys.executable
    checks = {} if arguments else CHECKS
    failed = [name for name, command in checks.items() if run(name, beside_python(command)) != 0]
    pytest = [python, "-m", "pytest", f"--numprocesses={processes()}", "--dist=worksteal", *arguments]
    if run("tests", pytest) != 0:
        failed.append("tests")
    print(f"\n{'failed: ' + ', '.join(failed) if failed else 'all passed'}", flush=True)
    return 1 if failed else 0


def beside_python(command: str) -> list[str]:
    """Return the command's words, its program being the one of this environment."""
    program, *arguments = command.split()
    return [str(Path(sys.executable).with_name(program)), *arguments]


def processes() -> int:
    """Two for each core: tests wait for other processes, for the kernel's timers and for the disk."""
    cores = os.cpu_count() or 1
    return 2 * cores


def run(title: str, command: list[str]) -> int:
    """Its exit status."""
    print(f"\n== {title}", flush=True)
    began = time.monotonic()
    # Without byte code on disk, each of the thousand processes that the tests start would compile the packages anew.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(command, check=False, env=environment)
    print(f"-- {title}: {'ok' if done.returncode == 0 else 'FAILED'} in {time.monotonic() - began:.1f} s", flush=True)
    return done.returncode


def provide_debian_packages(*, may_install: bool) -> None:
    """Install the packages that are missing, as root or through sudo, if allowed; name those still missing, whose
    tests are skipped."""
    missing = missing_packages()
    if missing and may_install:
        install(missing)
        missing = missing_packages()
    if missing:
        hint = "" if may_install else f" ({INSTALL} installs them)"
        print(f"Without these Debian packages some tests are skipped{hint}: {' '.join(missing)}", flush=True)


def missing_packages() -> list[str]:
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
    return [package for package, command in DEBIAN_PACKAGES.items() if not shutil.which(command, path=path)]


def install(packages: list[str]) -> None:
    """Install all at once, or else one by one: apt-get installs none of them where it cannot install one."""
    prefix = [] if os.geteuid() == 0 else ["sudo", "-n"] if shutil.which("sudo") else None
    if prefix is None or not shutil.which("apt-get"):
        return
    print(f"== Debian packages: {' '.join(packages)}", flush=True)
    apt_get([*prefix, "apt-get", "update", "-qq"])
    command = [*prefix, "apt-get", "install", "-y", "-qq", "--no-install-recommends"]
    if not apt_get([*command, *packages]):
        for package in packages:
            apt_get([*command, package])


def apt_get(command: list[str]) -> bool:
    """Return whether the command succeeded; say so if not."""
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    succeeded = subprocess.run(command, check=False, env=quiet, stdout=subprocess.DEVNULL).returncode == 0
    if not succeeded:
        print(f"   {' '.join(command)} failed", flush=True)
    return succeeded


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
