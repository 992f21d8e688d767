"""Who we are at a CA: one key for all of them, one account at each.

The key is made once and kept sealed in Postgres, whoever of several monitors comes first. An account is made by asking
for it: a CA that knows the key answers with the account it has (RFC 8555 §7.3.1), so however many monitors ask at
once, there is one.
"""

from __future__ import annotations

import asyncio

from acme import messages
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from josepy.json_util import encode_b64jose
from josepy.jwk import JWKEC

from common.db import acme_accounts
from common.db.acme_accounts import KEY_IDENTITY, SealedKey
from common.db.pool import Database
from common.errors import OperatorError, SecretUnreadable
from common.logs import get_logger
from common.secrets import Keyring
from common.settings import ExternalAccount
from monitor.certificates.acme.problems import Problem, failure
from monitor.certificates.acme.transport import Transport
from monitor.certificates.issuer import IssuanceFailed

_log = get_logger("monitor.certificates.acme")


async def open_key(database: Database, keyring: Keyring) -> JWKEC:
    """The one account key, made now if there is none; its thumbprint is on its way to the edges.

    Raises: `DatabaseUnavailable`, `OperatorError`.
    """
    async with database.transaction() as connection:
        kept = await acme_accounts.find_key(connection)
        if kept is None:
            await acme_accounts.keep_key(connection, _new_key(keyring))
            kept = await acme_accounts.find_key(connection)
    assert kept is not None, "there is one from here on"
    try:
        key = load_pem_private_key(keyring.open(kept.private_key, KEY_IDENTITY), None)
    except SecretUnreadable as error:
        raise OperatorError(f"cannot open the key of the ACME accounts: {error}") from error
    return JWKEC(key=key)


def thumbprint(key: JWKEC) -> str:
    """RFC 7638 §3; the second half of every key authorization (RFC 8555 §8.1)."""
    return encode_b64jose(key.thumbprint())


def _new_key(keyring: Keyring) -> SealedKey:
    key = ec.generate_private_key(ec.SECP256R1())
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return SealedKey(keyring.seal(secret, KEY_IDENTITY), thumbprint(JWKEC(key=key)))


class Account:
    """Ours at one CA. One a process and CA, made by the monitor's composition."""

    def __init__(
        self, database: Database, transport: Transport, *, email: str | None, external: ExternalAccount | None
    ) -> None:
        self._database = database
        self._transport = transport
        self._email = email
        self._external = external
        self._url: str | None = None
        self._gone: str | None = None  # the CA says that there is no such account
        self._lock = asyncio.Lock()

    async def url(self) -> str:
        """Where it is, made now if there is none. Raises: `IssuanceFailed`, `DatabaseUnavailable`."""
        async with self._lock:
            if self._url is None:
                self._url = await self._find() or await self._register()
            return self._url

    def forget(self, url: str) -> None:
        """The CA knows no such account, any more: the next who needs one asks for it."""
        self._gone = url
        if self._url == url:
            self._url = None

    async def _find(self) -> str | None:
        async with self._database.connection() as connection:
            url = await acme_accounts.find_account(connection, self._transport.directory_url)
        return None if url == self._gone else url

    async def _register(self) -> str:
        transport = self._transport
        directory = await transport.directory()
        try:
            answer = await transport.post(directory["newAccount"], self._registration(directory), account_url=None)
        except Problem as problem:
            _log.error("a CA gives us no account", authority=transport.authority, reason=str(problem))
            raise failure(problem, transport.authority) from problem
        if not answer.url:
            raise transport.unreadable("new account")
        async with self._database.transaction() as connection:
            await acme_accounts.keep_account(connection, transport.directory_url, answer.url)
        _log.info("account at a CA", authority=transport.authority, url=answer.url)
        return answer.url

    def _registration(self, directory: messages.Directory) -> messages.NewRegistration:
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
