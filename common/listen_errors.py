"""Explains, in one line for the operator, why an address cannot be listened on."""

from __future__ import annotations

import errno
import os

from common.errors import OperatorError
from common.host_ports import HostPort


def cannot_listen(address: HostPort, variable: str, error: OSError) -> OperatorError:
    """Make the error for an address that cannot be listened on. `variable`: the setting that names the address."""
    return OperatorError(f"{variable}: {_explain(address, variable, error)}")


def _explain(address: HostPort, variable: str, error: OSError) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"{address} is in use: stop what listens there, or set {variable} to another address"
        case errno.EACCES | errno.EPERM:
            return f"{address} needs a privilege: use a port above 1023, or grant CAP_NET_BIND_SERVICE"
        case errno.EADDRNOTAVAIL:
            return f"{address} is not an address of this machine"
        case int(number) if number > 0:
            return f"cannot listen on {address}: {os.strerror(number)}"
        case _:  # from the look-up of the name
            return f"cannot listen on {address}: {error.strerror or error}"
