"""Slows down guessing of passwords: by address, and by account, without locking an account's owner out. Pure.

Rules
    an address may guess `_GUESSES_OF_ADDRESS` times in a row, then once in `_SECONDS_OF_ADDRESS`
    an account may be guessed at from browsers that it never signed in from, all together, `_GUESSES_OF_ACCOUNT` times
        in a row, then once in `_SECONDS_OF_ACCOUNT`
    a passkey cannot be guessed: its use counts for the address alone, so that no stranger keeps an owner from it
    a browser that has signed in to the account before (it has our device cookie) has a bucket of its own, which
        strangers cannot empty; a link signs in whatever the buckets hold
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from api.rate_limits import TokenBuckets
from common.clock import Clock
from common.secrets import Keyring

_GUESSES_OF_ADDRESS, _SECONDS_OF_ADDRESS = 20, 6.0
_GUESSES_OF_ACCOUNT, _SECONDS_OF_ACCOUNT = 10, 30.0
_GUESSES_OF_DEVICE, _SECONDS_OF_DEVICE = 10, 6.0
_PURPOSE = "dashboard/device"


@dataclass(frozen=True, slots=True)
class Throttle:
    """One a process."""

    clock: Clock
    keyring: Keyring
    addresses: TokenBuckets
    accounts: TokenBuckets
    devices: TokenBuckets

    @classmethod
    def of(cls, clock: Clock, keyring: Keyring) -> Throttle:
        return cls(
            clock,
            keyring,
            TokenBuckets(1 / _SECONDS_OF_ADDRESS, _GUESSES_OF_ADDRESS),
            TokenBuckets(1 / _SECONDS_OF_ACCOUNT, _GUESSES_OF_ACCOUNT),
            TokenBuckets(1 / _SECONDS_OF_DEVICE, _GUESSES_OF_DEVICE),
        )

    def charge(self, address: str, email: str, device: str | None) -> float:
        """Take a guess. Returns 0, or the seconds until the next one is allowed."""
        now = self.clock.monotonic()
        known = self._serial(device, email)
        account = (self.devices, known) if known is not None else (self.accounts, email)
        wait = max(self.addresses.wait_seconds(address, now), account[0].wait_seconds(account[1], now))
        if wait:
            return wait
        self.addresses.take(address, now)
        account[0].take(account[1], now)
        return 0.0

    def charge_address(self, address: str) -> float:
        """As `charge`, for an attempt that names no account."""
        now = self.clock.monotonic()
        wait = self.addresses.wait_seconds(address, now)
        if not wait:
            self.addresses.take(address, now)
        return wait

    def device_cookie(self, serial: str, email: str) -> str:
        """States that the browser has signed in to the account."""
        return f"{serial}.{self._signature(serial, email)}"

    def _serial(self, device: str | None, email: str) -> str | None:
        serial, _, signature = (device or "").partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signature(serial, email).encode())
        return serial if is_ours else None

    def _signature(self, serial: str, email: str) -> str:
        key = self.keyring.derive(_PURPOSE)
        return hmac.new(key, f"{serial}/{email}".encode(), "sha256").hexdigest()
