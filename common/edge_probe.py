"""Asks for a domain over HTTP whether our own edge answers there (`common.probe`), through whatever CDN.

The domain's addresses are the customer's word (`common.pinned`): nothing is followed, time and size are bounded.
"""

from __future__ import annotations

import hmac

import aiohttp

from common.addresses import AddressPolicy
from common.dns import Pass
from common.pinned import pinned_session
from common.probe import PROBE_PATH, new_nonce, probe_answer
from common.secrets import Keyring

_LONGEST_SECONDS = 3.0


class HttpEdgeProbe:
    """One a process. `port` is where the world speaks HTTP."""

    def __init__(self, keyring: Keyring, policy: AddressPolicy, *, port: int = 80) -> None:
        self._keyring = keyring
        self._policy = policy
        self._port = port

    async def __call__(self, questions: Pass, domain: str) -> bool:
        addresses = [*(await questions.ask(domain, "A")).values, *(await questions.ask(domain, "AAAA")).values]
        if not addresses:
            return False
        nonce = new_nonce()
        expected = probe_answer(self._keyring, domain, nonce)
        assert expected is not None
        try:
            answer = await self._get(domain, addresses, nonce, len(expected))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return False
        return hmac.compare_digest(answer, expected)

    async def _get(self, domain: str, addresses: list[str], nonce: str, size: int) -> bytes:
        """The first bytes of a 200; nothing for any other status."""
        url = f"http://{domain}:{self._port}{PROBE_PATH}{nonce}"
        async with (
            pinned_session(self._policy, addresses, longest_seconds=_LONGEST_SECONDS) as session,
            session.get(url, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as response,
        ):
            if response.status != 200:
                return b""
            return await response.content.read(size + 1)
