"""Rate limits: how many requests an application and a client address may send, as token buckets.

Rules
    an application's bucket is charged after its token was verified, so that no other party can empty it; what an API
        key opens is charged to its user, and leaves the application's bucket as it is
    an address' bucket is charged before anything else, health excepted; a trusted proxy stands for its clients
    wrong secrets are counted per address and application: guesses from elsewhere do not lock the application out
    a bucket holds `BURST_SECONDS` of its rate, so a migration in bursts is not slowed
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from common.clock import Clock
from common.settings import Settings
from common.token_buckets import TokenBuckets

BURST_SECONDS = 10
_WRONG_SECRETS = 10
_SECONDS_A_WRONG_SECRET = 6.0


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rates of requests. One instance per process.

    Each function returns 0, or the seconds to wait before the next request.
    """

    clock: Clock
    payers: TokenBuckets
    addresses: TokenBuckets
    wrong_secrets: TokenBuckets

    @classmethod
    def of(cls, settings: Settings, clock: Clock) -> RateLimits:
        """Make the limits that the settings give."""
        application, address = settings.api_requests_per_second, settings.api_requests_per_second_per_address
        return cls(
            clock,
            TokenBuckets(application, application * BURST_SECONDS),
            TokenBuckets(address, address * BURST_SECONDS),
            TokenBuckets(1 / _SECONDS_A_WRONG_SECRET, _WRONG_SECRETS),
        )

    def charge(self, payer: str) -> float:
        """`payer`: the id of the application, or of the user whose API key opened the request."""
        return self.payers.take(payer, self.clock.monotonic())

    def fields(self, payer: str, kind: Literal["application", "user"] = "application") -> dict[str, str]:
        """Return the header fields about the rate of an application or a user."""
        return self._fields(kind, self.payers, payer)

    def address_fields(self, address: str) -> dict[str, str]:
        """Return the header fields about the rate of an address."""
        return self._fields("address", self.addresses, address)

    def wrong_secret_fields(self, address: str, application_id: str) -> dict[str, str]:
        """Return the header fields about wrong secrets of an address."""
        return self._fields("wrong-secrets", self.wrong_secrets, _pair(address, application_id))

    def _fields(self, kind: str, buckets: TokenBuckets, key: Hashable) -> dict[str, str]:
        """Return ``RateLimit-Policy`` and ``RateLimit`` (draft-ietf-httpapi-ratelimit-headers).

        They state the requests of a burst with the seconds in which they come back, and what is left of them.
        """
        left = buckets.left(key, self.clock.monotonic())
        policy = f'"{kind}";q={buckets.burst};w={buckets.refill_seconds}'
        return {"RateLimit-Policy": policy, "RateLimit": f'"{kind}";r={left}'}

    def charge_address(self, address: str) -> float:
        """Take a token of an address; return the seconds to wait where there is none."""
        return self.addresses.take(address, self.clock.monotonic())

    def charge_wrong_secret(self, address: str, application_id: str) -> float:
        """Count a wrong secret of an address."""
        return self.wrong_secrets.take(_pair(address, application_id), self.clock.monotonic())

    def wait_after_wrong_secrets(self, address: str, application_id: str) -> float:
        """Return how long an address waits after wrong secrets."""
        return self.wrong_secrets.wait_seconds(_pair(address, application_id), self.clock.monotonic())


def _pair(address: str, application_id: str) -> tuple[str, str]:
    """Return the key of an address and an identifier, which is the client's text, of any length."""
    return address, application_id[:64]
