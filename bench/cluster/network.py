"""The machines of a run, and the network between them.

A machine is a network namespace with one address on a bridge, which needs root; nftables drops what a cut machine is
sent. Everything lies in namespaces of the run itself, processes too, so that nothing stays behind. Where namespaces are
refused, a machine is an address of loopback, and nothing can be cut.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import OperatorError

_UNSHARE = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
_AS_INIT = ("sh", "-c", '"$@"; exit $?', "sh")  # a shell that waits for what loses its parent
_NAMES = Path("/run/netns")
_RULES = """
table inet run {
  set cut {
    type ipv4_addr
  }
  chain input {
    type filter hook input priority 0
    ip saddr @cut drop
  }
}
"""


def enter_namespaces(arguments: Sequence[str], module: str = "bench.cluster") -> None:
    """Replace this process by ``python -m MODULE --inside`` in namespaces of its own, where that is possible."""
    programs = ("unshare", "nsenter", "ip", "nft")
    if os.geteuid() != 0 or not all(map(shutil.which, programs)):
        return
    if subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode != 0:
        return
    command = (*_UNSHARE, *_AS_INIT, sys.executable, "-m", module, "--inside", *arguments)
    os.execvp(command[0], command)


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: its name and its address. `within` begins the command of each of its processes."""

    name: str
    address: str
    within: tuple[str, ...] = ()


class Network:
    """The machines of a run. Mutable state: which packets are dropped."""

    def __init__(self, *, has_namespaces: bool) -> None:
        """Prepare the bridge. `has_namespaces`: this process is in namespaces of its own.

        Raises: `OperatorError`.
        """
        self.has_namespaces = has_namespaces
        self._prefix = "10.88.0." if has_namespaces else "127.88.0."
        self.cidr = self._prefix + "0/24"
        self._cut: set[str] = set()
        self.lab = Machine("lab", self._prefix + "1")
        if has_namespaces:
            _NAMES.mkdir(parents=True, exist_ok=True)
            run_command("mount", "-t", "tmpfs", "none", str(_NAMES))
            run_command("ip", "link", "set", "lo", "up")
            run_command("ip", "link", "add", "br0", "type", "bridge")
            run_command("ip", "address", "add", f"{self.lab.address}/24", "dev", "br0")
            run_command("ip", "link", "set", "br0", "up")

    def add(self, name: str, number: int) -> Machine:
        """Add a machine whose address ends in `number`.

        Raises: `OperatorError`.
        """
        address = f"{self._prefix}{number}"
        if not self.has_namespaces:
            return Machine(name, address)
        run_command("ip", "netns", "add", name)
        run_command("ip", "link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        run_command("ip", "link", "set", f"v{number}", "master", "br0", "up")
        run_command("ip", "-n", name, "address", "add", f"{address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            run_command("ip", "-n", name, "link", "set", device, "up")
        machine = Machine(name, address, ("nsenter", f"--net={_NAMES / name}", "--"))
        run_command(*machine.within, "nft", "-f", "-", given=_RULES)
        return machine

    def drop(self, source: Machine, target: Machine) -> None:
        """Drop, at `target`, all that `source` sends it.

        Raises: `OperatorError`.
        """
        run_command(*target.within, "nft", "add", "element", "inet", "run", "cut", f"{{ {source.address} }}")
        self._cut.add(target.name)

    def isolate(self, machine: Machine, others: Sequence[Machine], *, is_deaf_only: bool = False) -> None:
        """Cut a machine off from the others. `is_deaf_only`: what it sends still arrives, if they are machines."""
        for other in others:
            self.drop(other, machine)
            if not is_deaf_only and other.within:
                self.drop(machine, other)

    def heal(self) -> None:
        """Drop nothing any more."""
        for name in self._cut:
            run_command("nsenter", f"--net={_NAMES / name}", "--", "nft", "flush", "set", "inet", "run", "cut")
        self._cut.clear()


def mount_memory(directory: Path, mebibytes: int) -> None:
    """Mount a small disk there, of memory; only within namespaces of our own.

    Raises: `OperatorError`.
    """
    run_command("mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "none", str(directory))


def unmount_memory(directory: Path) -> None:
    """Take the disk there away, even while something is still open.

    Raises: `OperatorError`.
    """
    run_command("umount", "--lazy", str(directory))


def run_command(*command: str, given: str = "") -> None:
    """Run a program.

    Raises: `OperatorError` when it fails.
    """
    done = subprocess.run(command, input=given, text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise OperatorError(f"{' '.join(command)}: {done.stderr.strip()}")
