"""The application's own settings and secrets."""

from __future__ import annotations

from typing import Final

from api.answers.application import (
    Application,
    Applications,
    ClientSecret,
    ServiceAuthState,
    SignatureState,
    WebhookSecret,
)
from api.answers.messages import Message
from api.reference.operations.operation import Operation, Query
from api.reference.operations.parameters import LIMIT, NEXT
from api.schemas import application
from common.accounts import Permission

OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "GET",
        "/applications",
        "listApplications",
        "Application",
        "List the applications that the user may see, by name",
        Applications,
        queries=(
            LIMIT,
            NEXT,
            Query("search", {"type": "string", "maxLength": 100}, "Only with this in their name, id or cname target."),
        ),
        errors=(400,),
        by_key_alone=True,
        has_application=False,
    ),
    Operation(
        "POST",
        "/applications",
        "createApplication",
        "Application",
        "Make an application, as an owner; PUT /application/secret and /application/webhook-secret make its secrets",
        Application,
        status=201,
        body=application.ApplicationCreation,
        example={"name": "Acme Shops", "cnameTarget": "apps.acme.example"},
        errors=(400, 404, 409),
        permission=Permission.OWN,
        by_key_alone=True,
        has_application=False,
    ),
    Operation("GET", "/application", "getApplication", "Application", "Show the application's settings", Application),
    Operation(
        "PUT",
        "/application",
        "changeApplication",
        "Application",
        "Change settings; what is left out stays, an empty text takes a setting away",
        Message,
        body=application.ApplicationChange,
        example={"name": "Acme Shops", "rootPathAccess": ["/static"], "maintenance": False},
        errors=(400, 409),
    ),
    Operation(
        "PUT",
        "/application/operator",
        "changeApplicationAsOperator",
        "Application",
        "Set the tier, the connect subscription and the organisation, as an operator",
        Message,
        body=application.OperatorChange,
        example={"tier": "premium", "connect": True},
        errors=(400, 404),
        permission=Permission.OWN,
        by_key_alone=True,
    ),
    Operation(
        "DELETE",
        "/application",
        "deleteApplication",
        "Application",
        "Delete the application and stop serving its domains, as an owner; its name confirms",
        Message,
        status=202,
        body=application.ApplicationRemoval,
        errors=(400, 404),
        permission=Permission.OWN,
        by_key_alone=True,
    ),
    Operation(
        "PUT",
        "/application/secret",
        "rotateClientSecret",
        "Application",
        "Make a new client secret; the one so far works for another 24 hours",
        ClientSecret,
        body=application.ClientSecretRotation,
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/application/webhook-secret",
        "rotateWebhookSecret",
        "Application",
        "Make a new webhook secret; the one so far signs beside it for another 24 hours",
        WebhookSecret,
        body=application.SecretRotation,
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/application/signature",
        "switchSignature",
        "Application",
        "Sign forwarded requests, with a new key, or not",
        SignatureState,
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
        ServiceAuthState,
        body=application.ServiceAuthSwitch,
        example={"action": "rotate", "value": "a value of one's own"},
        errors=(400, 409),
    ),
)
