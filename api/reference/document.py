"""The OpenAPI 3.1 document, made of the rows of `api.operations`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final

from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode

from api.answers.messages import Problem
from api.operations import OPERATIONS, QUERIES, Operation
from api.reference.json_schema import AnswerSchema, describe
from api.reference.webhook_payloads import WEBHOOKS
from common.version import VERSION

_REFS: Final = "#/components/schemas/{model}"
_EVERYWHERE: Final = (405, 429, 500)
_AUTHENTICATED: Final = (401, 403)
_WITH_BODY: Final = (413, 415)
_RETRY_AFTER: Final = {
    "description": "Seconds after which the same request may succeed.",
    "schema": {"type": "integer"},
}
_KEY: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Within 24 hours, the same request under the same key gets the first one's answer.",
    "schema": {"type": "string", "pattern": "^[!-~]{1,255}$"},
}
_PREFER: Final = {
    "name": "Prefer",
    "in": "header",
    "description": "With `return=representation` (RFC 7240) the answer is the domain as it is then, not a message.",
    "schema": {"type": "string"},
}
_WORDS: Final[Mapping[int, str]] = {
    400: "Something in the request is not valid; the message and the hint name it.",
    401: "The token or the applicationId is missing or not valid.",
    403: "Authenticated, but not allowed for this application.",
    404: "There is no such thing, or it is another application's.",
    405: "The path does not take this method.",
    409: "Not in the present state.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    429: "Too many requests.",
    500: "A failure of ours.",
    502: "The change was not made; the message gives the reason.",
    503: "The database cannot be reached.",
}
_DESCRIPTION: Final = (
    "Every request carries the header `applicationId` and a bearer token, from `POST /token` or signed by yourself "
    "with the client secret (HS256, `exp` at most 24 hours ahead). A user's API key, made on the dashboard, stands in "
    "the place of the token: it opens what its user may do at that time, with every application that the user sees, "
    "and the calls that are about no application. Every error has `message`, `code` and `request_id`; "
    "`hint` may stand beside them. The handbook at `/docs` explains each product."
)


_OPENED_BY_KEY: Final = {
    False: "An application's token opens it, or a user's API key with the permission `{permission}`.",
    True: "A user's API key with the permission `{permission}` opens it, and no application's token.",
}
"""By whether it is for keys alone."""


def build(base_url: str) -> dict[str, Any]:
    """Build the document; `base_url` is where the API is reached."""
    schemas = _Schemas()
    paths: dict[str, dict[str, Any]] = {}
    for operation in OPERATIONS:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation, schemas)
    webhooks = {name: _webhook(model, schemas) for name, model in WEBHOOKS.items()}
    describe(schemas.found)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Frontage", "version": VERSION, "description": _DESCRIPTION},
        "servers": [{"url": base_url}],
        "security": _security(has_application=True, by_key_alone=False),
        "tags": [{"name": tag} for tag in dict.fromkeys(operation.tag for operation in OPERATIONS)],
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "schemas": dict(sorted(schemas.found.items())),
            "securitySchemes": {
                "applicationId": {"type": "apiKey", "in": "header", "name": "applicationId"},
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
                "key": {"type": "http", "scheme": "bearer", "description": "A user's API key."},
            },
        },
    }


class _Schemas:
    """`found` grows with each model that is referred to."""

    def __init__(self) -> None:
        self.found: dict[str, Any] = {}
        self._models: set[tuple[type, JsonSchemaMode]] = set()

    def of(self, kind: Any, mode: JsonSchemaMode) -> dict[str, Any]:
        if not isinstance(kind, type):
            return self._describe(kind, mode)
        if (kind, mode) not in self._models:
            self._models.add((kind, mode))
            self.found[kind.__name__] = self._describe(kind, mode)
        return {"$ref": _REFS.format(model=kind.__name__)}

    def _describe(self, kind: Any, mode: JsonSchemaMode) -> dict[str, Any]:
        schema = TypeAdapter(kind).json_schema(ref_template=_REFS, mode=mode, schema_generator=AnswerSchema)
        self.found |= schema.pop("$defs", {})
        return schema


def _operation(operation: Operation[Any], schemas: _Schemas) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "tags": [operation.tag],
        "summary": operation.summary,
        "responses": _responses(operation, schemas),
    }
    keys = [*([_KEY] if _takes_key(operation) else []), *([_PREFER] if operation.has_representation else [])]
    if parameters := [*_path_parameters(operation.paths), *_query_parameters(operation), *keys]:
        described["parameters"] = parameters
    if operation.body is not None:
        content = {"schema": schemas.of(operation.body, "validation"), "example": operation.example}
        described["requestBody"] = {"required": True, "content": {"application/json": content}}
    if operation.is_open:
        described["security"] = []
        return described
    if operation.by_key_alone:
        described["security"] = _security(has_application=operation.has_application, by_key_alone=True)
    described["description"] = _OPENED_BY_KEY[operation.by_key_alone].format(permission=operation.needed.value)
    return described


def _security(*, has_application: bool, by_key_alone: bool) -> list[dict[str, list[str]]]:
    named: dict[str, list[str]] = {"applicationId": []} if has_application else {}
    return [*([] if by_key_alone else [named | {"token": []}]), named | {"key": []}]


def _takes_key(operation: Operation[Any]) -> bool:
    return operation.method == "POST" and not operation.is_open


def _responses(operation: Operation[Any], schemas: _Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {operation.media_type: {}}
    if operation.answer is not None:
        answer[operation.media_type]["schema"] = schemas.of(operation.answer, "serialization")
    responses: dict[str, Any] = {
        str(operation.status): {"description": HTTPStatus(operation.status).phrase, "content": answer}
    }
    statuses = {*_EVERYWHERE, *operation.errors, *(() if operation.is_open else _AUTHENTICATED)}
    if not operation.is_open and operation.has_application:
        statuses |= {404}  # an API key's user does not see the application
    if (operation.method, operation.path) in QUERIES or _takes_key(operation):
        statuses |= {400}  # a query parameter that it does not know, or a bad key
    if _takes_key(operation):
        statuses |= {409, 413}
    if operation.id == "createToken":
        statuses |= {401}
    if operation.body is not None:
        statuses |= set(_WITH_BODY)
    if operation.path.startswith(("/healthz", "/readyz")):
        statuses -= {429}
    responses |= _errors(sorted(statuses), schemas)
    if operation.has_page:
        for status in (operation.status, *operation.errors):
            responses[str(status)]["content"] = {**responses[str(status)]["content"], "text/html": {}}
    return responses


def _errors(statuses: Iterable[int], schemas: _Schemas) -> dict[str, Any]:
    content = {"application/json": {"schema": schemas.of(Problem, "serialization")}}
    responses: dict[str, Any] = {}
    for status in statuses:
        responses[str(status)] = {"description": _WORDS[status], "content": content}
        if status in (429, 503):
            responses[str(status)]["headers"] = {"Retry-After": _RETRY_AFTER}
    return responses


def _path_parameters(paths: Mapping[str, str]) -> Sequence[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "description": words, "schema": {"type": "string"}}
        for name, words in paths.items()
    ]


def _query_parameters(operation: Operation[Any]) -> Sequence[dict[str, Any]]:
    return [
        {
            "name": query.name,
            "in": "query",
            "required": query.is_required,
            "description": query.words,
            "schema": dict(query.schema),
        }
        for query in operation.queries
    ]


def _webhook(model: type, schemas: _Schemas) -> dict[str, Any]:
    content = {"application/json": {"schema": schemas.of(model, "serialization")}}
    words = "Any 2xx within 15 seconds takes the delivery; all else has it sent again."
    return {
        "post": {
            "summary": (model.__doc__ or "").strip(),
            "requestBody": {"required": True, "content": content},
            "responses": {"200": {"description": words}},
            "security": [],
        }
    }
