"""How checks ask the roles of this machine: one HTTP request, within `ANSWER_SECONDS`."""

from __future__ import annotations

import http.client
import json
import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from common.host_ports import HostPort

ANSWER_SECONDS = 2.0


def get_json(address: HostPort, path: str) -> dict[str, Any] | None:
    """Return the JSON object that a role answers, whatever the status; None where no role answers."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=ANSWER_SECONDS) as response:
            body = response.read()
    except urllib.error.HTTPError as error:
        body = error.read()
    except (OSError, http.client.HTTPException):  # the latter: something else listens there
        return None
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def accepts(address: HostPort) -> bool:
    """Return whether the address accepts connections."""
    try:
        with socket.create_connection(address, timeout=ANSWER_SECONDS):
            return True
    except OSError:
        return False
