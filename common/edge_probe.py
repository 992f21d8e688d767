"""Asks for a domain over HTTP whether our own edge answers there (`common.probe`), through whatever CDN.

The domain's addresses are the customer's word (`common.pinned`): nothing is followed, time and size are bounded.
"""

from __future__ import annotations

import hmac
from enum import StrEnum

import aiohttp

from common.addresses import AddressPolicy
from common.dns import Pass
from common.pinned import pinned_session
from common.probe import PROBE_PATH, new_nonce, probe_answer
from common.secrets import Keyring
from common.settings import Settings

_LONGEST_SECONDS = 3.0


class Reached(StrEnum):
    """Where requests for a domain arrive. The values are what the API shows."""

    US = "us"
    ANOTHER = "another server"
    NO_SERVER = "no server"  # no address, no connection, or no answer in time
    UNKNOWN = "unknown"  # its addresses could not be asked for


class HttpEdgeProbe:
    """Asks over HTTP whether requests for a domain arrive at our edge. A process makes one.

    `port` is where the edge is reached from outside over HTTP. `policy`: `probing_policy`.
    """

    def __init__(self, keyring: Keyring, policy: AddressPolicy, *, port: int = 80) -> None:
        self._keyring = keyring
        self._policy = policy
        self._port = port

    async def __call__(self, questions: Pass, domain: str) -> bool:
        """Return whether our edge answers for `domain`."""
        return await self.find(questions, domain) is Reached.US

    async def find(self, questions: Pass, domain: str) -> Reached:
        """Find out where requests for `domain` arrive."""
        answers = await questions.resolve_confirmed(domain, "A", "AAAA")
        addresses = [address for answer in answers for address in answer.values]
        if not addresses:
            return Reached.NO_SERVER if all(answer.outcome.is_known for answer in answers) else Reached.UNKNOWN
        nonce = new_nonce()
        expected = probe_answer(self._keyring, domain, nonce)
        assert expected is not None
        try:
            answer = await self._get(domain, addresses, nonce, len(expected))
        except (aiohttp.ClientConnectionError, OSError, TimeoutError):
            return Reached.NO_SERVER
        except (aiohttp.ClientError, ValueError):
            return Reached.ANOTHER
        return Reached.US if hmac.compare_digest(answer, expected) else Reached.ANOTHER

    async def _get(self, domain: str, addresses: list[str], nonce: str, size: int) -> bytes:
        """Return the first bytes of a 200 response's body; nothing for any other status."""
        url = f"http://{domain}:{self._port}{PROBE_PATH}{nonce}"
        async with (
            pinned_session(self._policy, addresses, longest_seconds=_LONGEST_SECONDS) as session,
            session.get(url, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as response,
        ):
            if response.status != 200:
                return b""
            return await response.content.read(size + 1)


def probing_policy(settings: Settings) -> AddressPolicy:
    """Return the policy of `common.addresses.tenant_policy`, except that our edge's plain port may be dialled."""
    listeners = [listen for listen in settings.listeners if listen != settings.edge_http]
    return AddressPolicy(settings.allow_private_addresses, listeners, denied=settings.deny_addresses)
