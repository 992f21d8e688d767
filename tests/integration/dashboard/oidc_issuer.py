"""An OpenID Connect provider of the tests', on a real socket: honest, or as a test bends it."""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jwt
import orjson
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from yarl import URL

from bench.lab.ports import free_ports
from bench.lab.serving import serving

CLIENT, SECRET = "frontage", "a secret / with + signs"


def make_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass(slots=True)
class OidcIssuer:
    """`claims` go into the ID token, `userinfo` is what its endpoint answers. `sign`: another way to sign."""

    url: str
    claims: dict[str, Any] = field(default_factory=dict)
    userinfo: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    key: rsa.RSAPrivateKey = field(default_factory=make_key)
    key_id: str | None = "first"
    signs_with: tuple[Any, str] | None = None
    returns: dict[str, str] = field(default_factory=dict)
    key_reads: int = 0
    document_reads: int = 0
    _codes: dict[str, Mapping[str, str]] = field(default_factory=dict)

    def authorize(self, location: str, claims: dict[str, Any]) -> str:
        """Sign the user with these claims in; return where the browser is sent back to."""
        query = URL(location).query
        assert query["client_id"] == CLIENT
        assert query["response_type"] == "code"
        assert "openid" in query["scope"].split()
        code = secrets.token_urlsafe(16)
        self._codes[code] = dict(query)
        self.claims = claims
        answer = {"code": code, "state": query["state"], "iss": self.url} | self.returns
        return URL(query["redirect_uri"]).with_query(answer).raw_path_qs

    def public(self) -> dict[str, Any]:
        return RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True) | {"use": "sig"} | self._kid()

    def _kid(self) -> dict[str, str]:
        return {} if self.key_id is None else {"kid": self.key_id}

    async def get_document(self, _: web.Request) -> web.Response:
        self.document_reads += 1
        document = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "authorization_response_iss_parameter_supported": True,
        }
        return _json(document | self.document)

    async def get_keys(self, _: web.Request) -> web.Response:
        self.key_reads += 1
        return _json({"keys": [{"kty": "unheard of"}, self.public()]})

    async def post_token(self, request: web.Request) -> web.Response:
        form = await request.post()
        asked = self._codes.pop(str(form["code"]), None)
        pair = base64.b64decode(request.headers["Authorization"].removeprefix("Basic ")).decode()
        digest = hashlib.sha256(str(form["code_verifier"]).encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        is_client = pair == f"{CLIENT}:a%20secret%20%2F%20with%20%2B%20signs"
        if asked is None or not is_client or challenge != asked["code_challenge"]:
            return _json({"error": "invalid_grant"}, status=400)
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": asked["nonce"]} | self.claims
        key, algorithm = self.signs_with or (self.key, "RS256")
        token = jwt.encode(claims, key, algorithm=algorithm, headers=self._kid())
        return _json({"access_token": "opaque", "token_type": "Bearer", "id_token": token})

    async def get_userinfo(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer opaque"
        return _json({"sub": self.claims["sub"]} | self.userinfo)


@asynccontextmanager
async def serving_issuer() -> AsyncIterator[OidcIssuer]:
    (port,) = free_ports(1)
    issuer = OidcIssuer(f"http://127.0.0.1:{port}")
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", issuer.get_document)
    app.router.add_get("/keys", issuer.get_keys)
    app.router.add_post("/token", issuer.post_token)
    app.router.add_get("/userinfo", issuer.get_userinfo)
    async with serving(app, "127.0.0.1", port):
        yield issuer


def _json(document: object, *, status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(document), status=status, content_type="application/json")
