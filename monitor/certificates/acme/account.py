"""The ACME account: one key for all CAs, one account at each.

The first of several monitors creates the key, which is kept sealed in Postgres. A newAccount request with a known key
returns the existing account (RFC 8555 §7.3.1), so there is one account however many monitors ask at once.
"""

from __future__ import annotations

import asyncio
import math

import orjson
from acme import messages
from acme.jws import JWS
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from josepy.interfaces import JSONDeSerializable
from josepy.json_util import encode_b64jose
from josepy.jwa import ES256
from josepy.jwk import JWKEC

from common.db import acme_accounts
from common.db.acme_accounts import KEY_IDENTITY, Identity, Rollover, SealedKey
from common.db.pool import Database
from common.errors import OperatorError, SecretUnreadable
from common.logs import get_logger
from common.secrets import Keyring
from common.setting_values import ExternalAccount
from monitor.certificates.acme.problems import AcmeProblem, failure
from monitor.certificates.acme.transport import Transport
from monitor.certificates.issuer import IssuanceFailed

_log = get_logger("monitor.certificates.acme")

_ROLLOVER_SECONDS = 2.0


async def open_key(database: Database, keyring: Keyring) -> JWKEC:
    """Return the account key, created if there is none; the change feed carries its thumbprint to the edges.

    Raises: `DatabaseUnavailable`, `OperatorError`.
    """
    async with database.transaction() as connection:
        kept = await acme_accounts.find_key(connection)
        if kept is None:
            await acme_accounts.keep_key(connection, new_key(keyring))
            kept = await acme_accounts.find_key(connection)
    assert kept is not None, "there is one from here on"
    return open_sealed(kept, keyring)


def open_sealed(kept: SealedKey, keyring: Keyring) -> JWKEC:
    """Open a stored account key.

    Raises: `OperatorError`.
    """
    try:
        key = load_pem_private_key(keyring.open(kept.private_key, KEY_IDENTITY), None)
    except SecretUnreadable as error:
        raise OperatorError(f"cannot open the key of the ACME accounts: {error}") from error
    return JWKEC(key=key)


def thumbprint(key: JWKEC) -> str:
    """Return the thumbprint of the key (RFC 7638 §3), the second half of every key authorization (RFC 8555 §8.1)."""
    return encode_b64jose(key.thumbprint())


def new_key(keyring: Keyring) -> SealedKey:
    """Generate an account key and seal it."""
    key = ec.generate_private_key(ec.SECP256R1())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return SealedKey(keyring.seal(secret, KEY_IDENTITY), thumbprint(JWKEC(key=key)))


def _sign_key_change(url: str, account_url: str, old: JWKEC, new: JWKEC) -> JSONDeSerializable:
    """Return the inner request of a key change, which the new key signs (RFC 8555 §7.3.5)."""
    inner = {"account": account_url, "oldKey": old.public_key().to_partial_json()}
    signed: JSONDeSerializable = JWS.sign(orjson.dumps(inner), new, ES256, None, url)
    return signed


class AcmeAccount:
    """The account at one CA. One per process and CA, created by `open_acme`.

    Mutable state: `_identity`, as last stored; `_gone`, an account that the CA reports as unknown; `_rollover`, whether
    the key is being changed, as read at `_read_at`.
    """

    def __init__(
        self,
        database: Database,
        transport: Transport,
        keyring: Keyring,
        *,
        email: str | None,
        external: ExternalAccount | None,
        trusted_seconds: float,
        caa_identities: tuple[str, ...] = (),
    ) -> None:
        """Create the account's state; `caa_identities` replace the CAA names that the CA does not state.

        A key that was read is used for `trusted_seconds` without being read again.
        """
        self._database = database
        self._transport = transport
        self._keyring = keyring
        self._email = email
        self._external = external
        self._caa_identities = caa_identities
        self._trusted_seconds = trusted_seconds
        self._identity: Identity | None = None
        self._gone: str | None = None
        self._rollover: Rollover | None = None
        self._read_at = -math.inf
        self._lock = asyncio.Lock()

    async def refresh(self) -> None:
        """Take the present account key, read from the database unless it was read just now.

        Raises: `IssuanceFailed` while CAs are being asked to take the next one, or where it cannot be opened;
            `DatabaseUnavailable`.
        """
        if asyncio.get_running_loop().time() - self._read_at > self._trusted_seconds:
            await self.read_key()
        if self._rollover is not None and self._rollover.key is not None:
            words = f": {self._rollover.last_error}" if self._rollover.last_error else ""
            raise IssuanceFailed(
                f"the key of our accounts is being changed{words}",
                retry_after_seconds=_ROLLOVER_SECONDS,
                kind="rate_limited",
            )

    async def read_key(self) -> None:
        """Read the account key, and whether it is being changed.

        An account of the key before is forgotten with it: the stored one goes by the new key.

        Raises: `IssuanceFailed` where it cannot be opened; `DatabaseUnavailable`.
        """
        read_at = asyncio.get_running_loop().time()
        async with self._database.connection() as connection:
            self._rollover = await acme_accounts.find_rollover(connection)
            kept = await acme_accounts.find_key(connection)
        if kept is not None and kept.thumbprint != thumbprint(self._transport.key):
            try:
                self._transport.key = open_sealed(kept, self._keyring)
            except OperatorError as error:
                raise IssuanceFailed(str(error), kind="unavailable") from error
            self._identity = None
        self._read_at = read_at

    async def find_key_change(self) -> str:
        """Return where the CA takes another key of the account.

        Raises: `IssuanceFailed` for one that takes none, or cannot be asked.
        """
        try:
            url: str = (await self._transport.directory())["keyChange"]
        except KeyError as error:
            raise IssuanceFailed(f"{self._transport.authority} changes no keys of accounts") from error
        return url

    async def roll(self, old: JWKEC, new: JWKEC) -> None:
        """Have the CA take the new key for the account (RFC 8555 §7.3.5), unless it has, or knows no account of ours.

        An account that the CA has lost is registered again by the next order.

        Raises: `IssuanceFailed`, `DatabaseUnavailable`.
        """
        async with self._database.connection() as connection:
            known = await acme_accounts.find_identity(connection, self._transport.directory_url)
        if known is None or await self._is_known_by(new):
            return
        url = await self.find_key_change()
        try:
            await self._transport.post(
                url,
                _sign_key_change(url, known.account_url, old, new),
                account_url=known.account_url,
                is_repeatable=False,
                key=old,
            )
        except AcmeProblem as problem:
            if problem.code == "accountDoesNotExist":
                return
            raise failure(problem, self._transport.authority) from problem
        _log.info("the CA has taken another key of the account", authority=self._transport.authority)

    async def _is_known_by(self, key: JWKEC) -> bool:
        """Return whether the CA knows an account by the key (§7.3.1)."""
        directory = await self._transport.directory()
        asked = messages.NewRegistration(only_return_existing=True)
        try:
            await self._transport.post(directory["newAccount"], asked, account_url=None, key=key)
        except AcmeProblem as problem:
            if problem.code == "accountDoesNotExist":
                return False
            raise failure(problem, self._transport.authority) from problem
        return True

    async def identity(self) -> Identity:
        """Return the account and the CA's CAA names of today; register an account if there is none.

        Raises: `IssuanceFailed`, also where one has to be registered while the key is being changed;
            `DatabaseUnavailable`.
        """
        transport = self._transport
        directory = await transport.directory()
        names = tuple(directory.meta.caa_identities or self._caa_identities)
        async with self._lock:
            known = self._identity or await self._find()
            if known is None:
                await self.read_key()  # a key that another monitor has changed would make a second account
                await self.refresh()
            key = transport.key
            url = await self._register(directory) if known is None else known.account_url
            identity = Identity(names, url)
            if identity != known:
                async with self._database.transaction() as connection:
                    await acme_accounts.keep_identity(connection, transport.directory_url, thumbprint(key), identity)
            if transport.key is key:
                self._identity = identity
        return identity

    async def url(self) -> str:
        """Return the URL of the account; register one if there is none.

        Raises: `IssuanceFailed`, `DatabaseUnavailable`.
        """
        return (await self.identity()).account_url

    def forget(self, url: str) -> None:
        """Drop an account that the CA no longer knows; the next order requests a new one."""
        self._gone = url
        if self._identity is not None and self._identity.account_url == url:
            self._identity = None

    async def _find(self) -> Identity | None:
        """Return the stored account, unless the CA no longer knows it."""
        async with self._database.connection() as connection:
            found = await acme_accounts.find_identity(connection, self._transport.directory_url)
        return None if found is not None and found.account_url == self._gone else found

    async def _register(self, directory: messages.Directory) -> str:
        """Register the account at the CA, or find the existing one, and return its URL."""
        transport = self._transport
        try:
            answer = await transport.post(directory["newAccount"], self._registration(directory), account_url=None)
        except AcmeProblem as problem:
            _log.error("the CA made no account", authority=transport.authority, reason=str(problem))
            raise failure(problem, transport.authority) from problem
        if not answer.url:
            raise transport.unreadable("new account")
        _log.info("using ACME account", authority=transport.authority, url=answer.url)
        return answer.url

    def _registration(self, directory: messages.Directory) -> messages.NewRegistration:
        """Build the newAccount request, bound to the external account if one is set."""
        if directory.meta.external_account_required and self._external is None:
            _log.error("a CA wants an external account: set FRONTAGE_ACME_EAB", authority=self._transport.authority)
            raise IssuanceFailed(f"there is no account with {self._transport.authority} yet")
        binding = None
        if self._external is not None:
            public_key = self._transport.key.public_key()
            binding = messages.ExternalAccountBinding.from_data(
                public_key, self._external.key_id, self._external.mac_key, directory
            )
        return messages.NewRegistration.from_data(
            email=self._email, terms_of_service_agreed=True, external_account_binding=binding
        )
