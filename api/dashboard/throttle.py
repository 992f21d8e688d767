"""Slows down guessing of passwords: by address, and by account, without locking an account's owner out.

Rules
    an address (of IPv6, a /64) may guess `_GUESSES_OF_ADDRESS` times in a row, then once in `_SECONDS_OF_ADDRESS`; all
        of an IPv6 /48 together, `_GUESSES_OF_SITE` and `_SECONDS_OF_SITE`
    an account may be guessed at from browsers that it never signed in from, all together, `_GUESSES_OF_ACCOUNT` times
        in a row, then once in `_SECONDS_OF_ACCOUNT`
    a passkey cannot be guessed: its use counts for the address alone, so that no stranger keeps an owner from it
    a browser that has signed in to the account before (it has our device cookie) has a bucket of its own and no
        other, so that no stranger empties it, at whatever address; a link signs in whatever the buckets hold
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from common.accounts import mint_random_token
from common.clock import Clock
from common.ip_addresses import site_key
from common.secrets import Keyring
from common.token_buckets import TokenBuckets

_GUESSES_OF_ADDRESS, _SECONDS_OF_ADDRESS = 20, 6.0
_GUESSES_OF_SITE, _SECONDS_OF_SITE = 80, 1.5
_GUESSES_OF_ACCOUNT, _SECONDS_OF_ACCOUNT = 10, 30.0
_GUESSES_OF_DEVICE, _SECONDS_OF_DEVICE = 10, 6.0
_PURPOSE = "dashboard/device"


@dataclass(frozen=True, slots=True)
class Throttle:
    """The paces of guesses of passwords. One instance per process."""

    clock: Clock
    keyring: Keyring
    addresses: TokenBuckets
    sites: TokenBuckets
    accounts: TokenBuckets
    devices: TokenBuckets

    @classmethod
    def of(cls, clock: Clock, keyring: Keyring) -> Throttle:
        """Make the throttle with its paces."""
        return cls(
            clock,
            keyring,
            TokenBuckets(1 / _SECONDS_OF_ADDRESS, _GUESSES_OF_ADDRESS),
            TokenBuckets(1 / _SECONDS_OF_SITE, _GUESSES_OF_SITE),
            TokenBuckets(1 / _SECONDS_OF_ACCOUNT, _GUESSES_OF_ACCOUNT),
            TokenBuckets(1 / _SECONDS_OF_DEVICE, _GUESSES_OF_DEVICE),
        )

    def charge(self, address: str, email: str, device: str | None) -> float:
        """Take a guess. Returns 0, or the seconds until the next one is allowed."""
        serial = self._serial(device, email)
        if serial is not None:
            return self._take((self.devices, serial))
        return self._take((self.addresses, address), (self.sites, site_key(address)), (self.accounts, email))

    def charge_address(self, address: str) -> float:
        """As `charge`, for an attempt that names no account."""
        return self._take((self.addresses, address), (self.sites, site_key(address)))

    def is_known(self, device: str | None, email: str) -> bool:
        """Whether the device cookie states that the browser has signed in to the account."""
        return self._serial(device, email) is not None

    def device_cookie(self, device: str | None, email: str) -> str:
        """Return the cookie that states that the browser has signed in to the account.

        It is `device` where that states so already, so that no browser gets a second bucket by signing in
        again.
        """
        if device is not None and self.is_known(device, email):
            return device
        serial = mint_random_token()[:16]
        return f"{serial}.{self._signature(serial, email)}"

    def _take(self, *keyed: tuple[TokenBuckets, str]) -> float:
        """Take a token of each bucket, or of none. Returns 0, or the seconds to wait."""
        now = self.clock.monotonic()
        wait = max(buckets.wait_seconds(key, now) for buckets, key in keyed)
        if not wait:
            for buckets, key in keyed:
                buckets.take(key, now)
        return wait

    def _serial(self, device: str | None, email: str) -> str | None:
        serial, _, signature = (device or "").partition(".")
        is_ours = hmac.compare_digest(signature.encode(), self._signature(serial, email).encode())
        return serial if is_ours else None

    def _signature(self, serial: str, email: str) -> str:
        key = self.keyring.derive(_PURPOSE)
        return hmac.new(key, f"{serial}/{email}".encode(), "sha256").hexdigest()
