"""The application's own settings and secrets."""

from __future__ import annotations

from typing import Final

from api.reference import answers
from api.reference.operations.operation import Operation
from api.schemas import application

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET", "/application", "getApplication", "Application", "Show the application's settings", answers.Application
    ),
    Operation(
        "PUT",
        "/application",
        "changeApplication",
        "Application",
        "Change settings; what is left out stays, an empty text takes a setting away",
        answers.Message,
        body=application.ApplicationChange,
        example={"name": "Acme Shops", "rootPathAccess": ["/static"], "maintenance": False},
        errors=(400, 409),
    ),
    Operation(
        "DELETE",
        "/application",
        "deleteApplication",
        "Application",
        "Delete the application and stop serving its domains; its name confirms",
        answers.Message,
        status=202,
        body=application.ApplicationRemoval,
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/application/secret",
        "rotateClientSecret",
        "Application",
        "Make a new client secret; the one so far works for another 24 hours",
        answers.ClientSecret,
        body=application.SecretRotation,
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/application/webhook-secret",
        "rotateWebhookSecret",
        "Application",
        "Make a new webhook secret; the one so far signs beside it for another 24 hours",
        answers.WebhookSecret,
        body=application.SecretRotation,
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/application/signature",
        "switchSignature",
        "Application",
        "Sign forwarded requests, with a new key, or not",
        answers.SignatureState,
        body=application.SignatureSwitch,
        example={"action": "rotate"},
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/application/service-auth",
        "switchServiceAuth",
        "Application",
        "Send X-Service-Auth; a rotation takes effect when it is finished",
        answers.ServiceAuthState,
        body=application.ServiceAuthSwitch,
        example={"action": "rotate", "value": "a value of one's own"},
        errors=(400, 409),
    ),
)
