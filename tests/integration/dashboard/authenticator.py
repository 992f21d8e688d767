"""An authenticator of one passkey, in software (WebAuthn Level 3). Its attributes can be set to what is wrong."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from dataclasses import dataclass, field
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

USER_PRESENT, USER_VERIFIED, HAS_CREDENTIAL = 0x01, 0x04, 0x40


@dataclass(slots=True)
class Authenticator:
    """`origin`: of the page that asks. `flags`: what it states about its user."""

    origin: str
    rp_id: str = "localhost"
    flags: int = USER_PRESENT | USER_VERIFIED
    sign_count: int = 0
    credential_id: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    user_handle: str | None = None

    def create(self, options: str) -> str:
        asked = json.loads(options)
        self.user_handle = asked["user"]["id"]
        point = self.key.public_key().public_numbers()
        x, y = (number.to_bytes(32, "big") for number in (point.x, point.y))
        cose_key = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: x, -3: y})
        credential = bytes(16) + len(self.credential_id).to_bytes(2, "big") + self.credential_id + cose_key
        data = self._data(HAS_CREDENTIAL) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client_data("webauthn.create", asked["challenge"])
        return self._answer({"clientDataJSON": _text(client), "attestationObject": _text(attestation)})

    def get(self, options: str) -> str:
        self.sign_count += 1
        client, data = self._client_data("webauthn.get", json.loads(options)["challenge"]), self._data(0)
        signature = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        return self._answer(
            {
                "clientDataJSON": _text(client),
                "authenticatorData": _text(data),
                "signature": _text(signature),
                "userHandle": self.user_handle,
            }
        )

    def _data(self, more_flags: int) -> bytes:
        hashed = hashlib.sha256(self.rp_id.encode()).digest()
        return hashed + bytes([self.flags | more_flags]) + self.sign_count.to_bytes(4, "big")

    def _client_data(self, kind: str, challenge: str) -> bytes:
        return json.dumps({"type": kind, "challenge": challenge, "origin": self.origin}).encode()

    def _answer(self, response: dict[str, Any]) -> str:
        name = _text(self.credential_id)
        return json.dumps({"id": name, "rawId": name, "type": "public-key", "response": response})


def _text(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).decode().rstrip("=")
