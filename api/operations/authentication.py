"""Tokens."""

from __future__ import annotations

from typing import Final

from api.answers.token import Token
from api.handlers.token import TokenHandler
from api.operations.operation import Operation
from api.operations.parameters import APPLICATION_ID
from api.schemas import token

OPERATIONS: Final[tuple[Operation[TokenHandler], ...]] = (
    Operation(
        "POST",
        "/token",
        TokenHandler.post,
        "createToken",
        "Authentication",
        "Exchange a client secret for a token of 60 minutes",
        Token,
        body=token.TokenBody,
        example={"applicationId": APPLICATION_ID, "secret": "your client secret"},
        errors=(400, 503),
        is_open=True,
    ),
)
