"""Passkeys (WebAuthn Level 3): what an authenticator is asked for, and what its answer proves.

Rules
    a challenge is made by us: random bytes and an end, authenticated for one purpose and one browser. Nothing is stored
        until it is answered; the answer is then stored as used (`common.db.passkeys.use_challenge`)
    answers count from our own origin and RP ID alone, and only with user verification (a PIN, a fingerprint)
    credentials are discoverable: the authenticator knows the user, who types no address
    no attestation is asked for: any authenticator will do

The library's import takes as long as a fifth of the API's start: no module imports this one before a passkey is used.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from webauthn import (
    generate_authentication_options,
    generate_registration_options,
    options_to_json,
    verify_authentication_response,
    verify_registration_response,
)
from webauthn.helpers import (
    parse_authentication_credential_json,
    parse_client_data_json,
    parse_registration_credential_json,
)
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticationCredential,
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    RegistrationCredential,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from api.dashboard.relying_party import RelyingParty
from common.clock import Clock
from common.errors import FrontageError
from common.secrets import Keyring

CHALLENGE_SECONDS = 300
LARGEST_ANSWER_CHARACTERS = 16 * 1024
_LONGEST_CREDENTIAL_ID = 1023  # WebAuthn §4, credential id
_CHALLENGE = struct.Struct(">16sQ32s")
_KEY = "dashboard/passkey challenge"
_UNREADABLE = (WebAuthnException, ValueError, TypeError, KeyError, AttributeError, RecursionError, struct.error)
"""What the library raises for answers that no authenticator gives."""


class ProofPurpose(StrEnum):
    """What a passkey is asked to prove."""

    SIGN_IN = "sign-in"
    CONFIRM = "confirm"
    REGISTER = "register"


class NotProven(FrontageError):
    """An answer that proves nothing. The reason is for the log, and not for the page."""


@dataclass(frozen=True, slots=True)
class Assertion:
    """A parsed answer of `navigator.credentials.get`; nothing in it is verified but the challenge."""

    credential: AuthenticationCredential
    challenge: bytes

    @property
    def credential_id(self) -> bytes:
        """Return the id of the passkey that answered."""
        return self.credential.raw_id

    @property
    def user_handle(self) -> bytes | None:
        """Return the user that the authenticator keeps with the passkey."""
        return self.credential.response.user_handle


@dataclass(frozen=True, slots=True)
class NewCredential:
    """A verified answer of `navigator.credentials.create`."""

    credential_id: bytes
    public_key: bytes
    sign_count: int
    challenge: bytes


@dataclass(frozen=True, slots=True)
class Passkeys:
    """Makes and verifies challenges of passkeys. One instance per process."""

    clock: Clock
    keyring: Keyring
    relying_party: RelyingParty

    def options_to_register(self, user_id: str, email: str, known: Sequence[bytes], holder: str) -> str:
        """As JSON. `known`: credentials that the user has already; their authenticators refuse to make another."""
        options = generate_registration_options(
            rp_id=self.relying_party.id,
            rp_name="Frontage",
            user_name=email,
            user_id=user_id.encode(),
            challenge=self._challenge(ProofPurpose.REGISTER, holder),
            timeout=CHALLENGE_SECONDS * 1000,
            authenticator_selection=AuthenticatorSelectionCriteria(
                resident_key=ResidentKeyRequirement.REQUIRED, user_verification=UserVerificationRequirement.REQUIRED
            ),
            exclude_credentials=[PublicKeyCredentialDescriptor(id=each) for each in known],
        )
        return options_to_json(options)

    def options_to_assert(self, purpose: ProofPurpose, holder: str, allowed: Sequence[bytes] = ()) -> str:
        """As JSON. `allowed`: the credentials that will do; without any, whichever the user chooses."""
        options = generate_authentication_options(
            rp_id=self.relying_party.id,
            challenge=self._challenge(purpose, holder),
            timeout=CHALLENGE_SECONDS * 1000,
            allow_credentials=[PublicKeyCredentialDescriptor(id=each) for each in allowed],
            user_verification=UserVerificationRequirement.REQUIRED,
        )
        return options_to_json(options)

    def verify_registration(self, text: str, holder: str) -> NewCredential:
        """Return the new passkey that the answer registers. Raises: `NotProven`."""
        try:
            credential = parse_registration_credential_json(_read(text))
            challenge = self._challenge_of(credential, ProofPurpose.REGISTER, holder)
            verified = verify_registration_response(
                credential=credential,
                expected_challenge=challenge,
                expected_rp_id=self.relying_party.id,
                expected_origin=self.relying_party.origin,
                require_user_verification=True,
            )
        except _UNREADABLE as error:
            raise NotProven(str(error)) from error
        if len(verified.credential_id) > _LONGEST_CREDENTIAL_ID:
            raise NotProven("the credential id is longer than WebAuthn allows")
        return NewCredential(verified.credential_id, verified.credential_public_key, verified.sign_count, challenge)

    def read_assertion(self, text: str, purpose: ProofPurpose, holder: str) -> Assertion:
        """Read an answer to a challenge of ours. Raises: `NotProven`."""
        try:
            credential = parse_authentication_credential_json(_read(text))
            return Assertion(credential, self._challenge_of(credential, purpose, holder))
        except _UNREADABLE as error:
            raise NotProven(str(error)) from error

    def verify_assertion(self, assertion: Assertion, public_key: bytes) -> int:
        """Verify the answer; return its sign count, which is compared where it is stored.

        See `common.db.passkeys.note_use`. Raises: `NotProven`.
        """
        try:
            verified = verify_authentication_response(
                credential=assertion.credential,
                expected_challenge=assertion.challenge,
                expected_rp_id=self.relying_party.id,
                expected_origin=self.relying_party.origin,
                credential_public_key=public_key,
                credential_current_sign_count=0,
                require_user_verification=True,
            )
        except _UNREADABLE as error:
            raise NotProven(str(error)) from error
        return verified.new_sign_count

    def _challenge(self, purpose: ProofPurpose, holder: str) -> bytes:
        nonce, ends_at = secrets.token_bytes(16), int(self.clock.now().timestamp()) + CHALLENGE_SECONDS
        return _CHALLENGE.pack(nonce, ends_at, self._signature(nonce, ends_at, purpose, holder))

    def _challenge_of(
        self, credential: AuthenticationCredential | RegistrationCredential, purpose: ProofPurpose, holder: str
    ) -> bytes:
        """Return the challenge that was answered. Raises: `NotProven`.

        We must have made it, for this purpose and browser, less than `CHALLENGE_SECONDS` ago.
        """
        challenge = parse_client_data_json(credential.response.client_data_json).challenge
        nonce, ends_at, signature = _CHALLENGE.unpack(challenge)
        if not hmac.compare_digest(signature, self._signature(nonce, ends_at, purpose, holder)):
            raise NotProven("the challenge was made for another browser or purpose")
        if ends_at < self.clock.now().timestamp():
            raise NotProven("the challenge has expired")
        return challenge

    def _signature(self, nonce: bytes, ends_at: int, purpose: ProofPurpose, holder: str) -> bytes:
        text = f"{purpose}/{nonce.hex()}/{ends_at}/{holder}"
        return hmac.digest(self.keyring.derive(_KEY), text.encode(), "sha256")


def hash_challenge(challenge: bytes) -> bytes:
    """Return what is stored of an answered challenge."""
    return hashlib.sha256(challenge).digest()


def _read(text: str) -> dict[str, object]:
    """Read the JSON of an answer. Raises: `NotProven`, ValueError."""
    if len(text) > LARGEST_ANSWER_CHARACTERS:
        raise NotProven("the answer is too large")
    found = json.loads(text)
    if not isinstance(found, dict):
        raise NotProven("the answer is no object")
    return found
