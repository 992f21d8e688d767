"""Claims that are remembered: by token and secret, bounded, and only of what was signed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from api.auth import SignedTokens, TokenFault, verify_token
from api.rules.application_tokens import mint_api_token

NOW = datetime(2026, 1, 5, tzinfo=UTC)
SECRET, ROTATED = "s" * 32, "r" * 32


def test_claims_are_read_once_and_belong_to_the_secret() -> None:
    signed, token = SignedTokens(), mint_api_token("ab12", SECRET, NOW)
    claims = signed.read(token, SECRET)
    assert claims is not None
    assert claims["applicationId"] == "ab12"
    assert signed.read(token, SECRET) is claims
    assert signed.read(token, ROTATED) is None, "what the secret before a rotation signed"
    assert signed.read(f"{token[:-2]}AA", SECRET) is None
    assert signed.read("\udcff.a.b", SECRET) is None


def test_the_time_of_a_remembered_token_is_checked_every_time() -> None:
    signed, token = SignedTokens(), mint_api_token("ab12", SECRET, NOW, lifetime=timedelta(minutes=1))
    assert not isinstance(verify_token(token, SECRET, NOW, signed), TokenFault)
    assert verify_token(token, SECRET, NOW + timedelta(minutes=2), signed) is TokenFault.EXPIRED


def test_tokens_that_are_remembered_are_bounded() -> None:
    signed, tokens = SignedTokens(most=2), [mint_api_token(f"a{number}", SECRET, NOW) for number in range(3)]
    first, second, third = (signed.read(token, SECRET) for token in tokens)
    assert signed.read(tokens[1], SECRET) is second
    assert signed.read(tokens[2], SECRET) is third
    assert signed.read(tokens[0], SECRET) is not first
    long = mint_api_token("ab12", SECRET, NOW, claims={"x": "x" * 3000})
    assert signed.read(long, SECRET) is not signed.read(long, SECRET)
