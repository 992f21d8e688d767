"""`frontage app …` and `frontage token`: applications, their secrets, and tokens to try the API with.

Everything is printed as JSON, for people and scripts alike. A secret is printed by the command that mints it and
by no other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from api.cli import application_options as options
from api.cli.application_options import ServiceAuthOption, Switch, switched
from api.cli.policies import resume, suspend
from api.cli.printing import AlwaysJson, AsJson, print_json, print_result
from common.errors import OperatorError

if TYPE_CHECKING:
    from api.cli.services import CommandServices
    from api.rules.application_tokens import SecretChange, ServiceAuthChange
    from api.services.operator_applications import ShownApplication
    from common.db.applications import Application, ApplicationChanges, ErrorStatus

app = typer.Typer(help="Applications: a partner's account units.", no_args_is_help=True)


@app.command()
def create(
    name: options.Name,
    cname_target: options.CnameTarget,
    secure_cname_target: options.SecureCnameTarget = None,
    application_url: options.ApplicationUrl = None,
    webhook_url: options.WebhookUrl = None,
    organisation: options.Organisation = None,
    error_status: options.NewErrorStatus = options.ErrorStatusOption.ALWAYS_502,
    test: options.Test = False,
    _: AlwaysJson = False,
) -> None:
    """Make an application and print its id and secrets, this once."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from api.services.application_secrets import MadeApplication
    from api.services.operator_applications import NewApplicationSettings

    status: ErrorStatus = "http" if error_status is options.ErrorStatusOption.HTTP else "502"
    new = NewApplicationSettings(
        name, cname_target, secure_cname_target, application_url, webhook_url, organisation, status, test
    )

    async def work(services: CommandServices) -> MadeApplication:
        return await services.applications.create(OPERATOR, new)

    made = run_with_services(work)
    print_json({"applicationId": made.id, "clientSecret": made.client_secret, "webhookSecret": made.webhook_secret})


@app.command("list")
def list_(_: AlwaysJson = False) -> None:
    """Print all applications, oldest first; no secrets."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> list[dict[str, Any]]:
        return [_shown(each) for each in await services.applications.list_all(OPERATOR)]

    print_json(run_with_services(work))


@app.command()
def show(application_id: options.Id, _: AlwaysJson = False) -> None:
    """Print an application; no secrets."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> dict[str, Any]:
        return _shown(await services.applications.show(OPERATOR, application_id))

    print_json(run_with_services(work))


@app.command("id")
def id_(target: options.TargetOfApplication, as_json: AsJson = False) -> None:
    """Print the id of the application that a cname target belongs to."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR

    async def work(services: CommandServices) -> Application | None:
        return await services.applications.find_by_target(OPERATOR, target)

    found = run_with_services(work)
    if found is None:
        raise OperatorError(f"no application has the cname target {target}: `frontage app list` prints them")
    print_result({"applicationId": found.id}, found.id, as_json=as_json)


@app.command("set")
def set_(
    application_id: options.Id,
    name: options.NewName = None,
    cname_target: options.NewCnameTarget = None,
    secure_cname_target: options.NewSecureCnameTarget = None,
    application_url: options.NewApplicationUrl = None,
    webhook_url: options.NewWebhookUrl = None,
    root_path_access: options.RootPaths = None,
    service_auth: options.ServiceAuth = None,
    service_auth_stdin: options.ServiceAuthStdin = False,
    signature: options.Signature = None,
    send_host: options.SendHost = None,
    origin_server_name: options.OriginServerName = None,
    origin_verify: options.OriginVerify = None,
    maintenance: options.Maintenance = None,
    error_page: options.ErrorPage = None,
    connect: options.Connect = None,
    buffer_uploads: options.BufferUploads = None,
    http2: options.Http2 = None,
    minimum_tls: options.MinimumTls = None,
    error_status: options.ErrorStatus = None,
    response_policy: options.ResponsePolicy = None,
    metadata_field: options.MetadataFields = None,
    tier: options.NewTier = None,
    organisation: options.NewOrganisation = None,
    _: AlwaysJson = False,
) -> None:
    """Change what is given, leave the rest, and print the result."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from api.services.operator_applications import MadeSecrets, WantedChanges

    changes = _given(
        name=name,
        cname_target=cname_target,
        secure_cname_target=secure_cname_target,
        application_url=application_url,
        webhook_url=webhook_url,
        root_path_access=tuple(filter(None, root_path_access)) if root_path_access else None,
        send_host=send_host and send_host.value,
        origin_server_name=origin_server_name,
        origin_verify=origin_verify and origin_verify is Switch.ON,
        maintenance=maintenance and maintenance is Switch.ON,
        connect=connect and connect is Switch.ON,
        buffer_uploads_bytes=buffer_uploads and int(buffer_uploads),
        http2=http2 and http2 is Switch.ON,
        minimum_tls=minimum_tls and minimum_tls.value,
        error_status=error_status and error_status.value,
        metadata_fields=tuple(filter(None, metadata_field)) if metadata_field else None,
        **_response_policy(response_policy),
        tier=tier and tier.value,
    )
    wanted = WantedChanges(
        settings=changes,
        organisation=organisation,
        error_page=error_page,
        service_auth=cast("ServiceAuthChange | None", service_auth and service_auth.value),
        own_service_auth=_own_service_auth(service_auth, is_given=service_auth_stdin),
        signature=cast("SecretChange | None", signature and signature.value),
    )

    async def work(services: CommandServices) -> tuple[MadeSecrets, dict[str, Any]]:
        made = await services.applications.change(OPERATOR, application_id, wanted)
        return made, _shown(await services.applications.show(OPERATOR, application_id))

    made, shown = run_with_services(work)
    minted = {"serviceAuthToken": made.service_auth, "signatureKey": made.signature_key}
    print_json(shown | {name: secret for name, secret in minted.items() if secret is not None})


def _own_service_auth(wanted: ServiceAuthOption | None, *, is_given: bool) -> str | None:
    """Read the application's own value from standard input. Raises: `OperatorError`."""
    import sys

    from api.rules import application_settings as rules

    if not is_given:
        return None
    if wanted not in (ServiceAuthOption.ON, ServiceAuthOption.ROTATE):
        raise OperatorError("--service-auth-stdin goes with --service-auth on or rotate")
    try:
        return rules.read_service_auth(sys.stdin.readline().rstrip("\r\n"))
    except rules.InvalidSetting as error:
        raise OperatorError(f"the value on standard input: {error}") from error


def _response_policy(text: str | None) -> dict[str, object]:
    """Read the API's `responsePolicy`; an empty text stands for none of it. Raises: `OperatorError`."""
    from api.errors import INVALID_BODY, Refused
    from api.rules.application_settings import InvalidSetting
    from api.schemas.bodies import parse_body
    from api.schemas.response_policy import ResponsePolicyBody

    if text is None:
        return {}
    try:
        body = parse_body(text.encode(), ResponsePolicyBody, INVALID_BODY)
        return {"response_policy": body.stored() or ""}
    except (Refused, InvalidSetting) as error:
        raise OperatorError(f"--response-policy: {getattr(error, 'hint', None) or error}") from error


def _given(**values: object) -> ApplicationChanges:
    """Return the changes that were given; an empty text takes a setting away."""
    given = {name: None if value == "" else value for name, value in values.items() if value is not None}
    return cast("ApplicationChanges", given)


@app.command("rotate-secret")
def rotate_secret(application_id: options.Id, keep_links: options.KeepLinks = False, _: AlwaysJson = False) -> None:
    """Print a new client secret. The old one works for another 24 hours; rotate twice to end it at once.

    With the old one end the sharing links, registered configurations and unfinished flows that its tokens made.
    """
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from api.rules import application_tokens as minting

    async def work(services: CommandServices) -> str:
        return await services.applications.rotate_client_secret(OPERATOR, application_id, keeps_links=keep_links)

    client_secret = run_with_services(work)
    until = datetime.now(UTC) + minting.PREVIOUS_SECRET_LIFETIME
    print_json(
        {
            "applicationId": application_id,
            "clientSecret": client_secret,
            "previousSecretWorksUntil": until.isoformat(timespec="seconds"),
        }
    )


@app.command("rotate-webhook-secret")
def rotate_webhook_secret(application_id: options.Id, _: AlwaysJson = False) -> None:
    """Print a new webhook secret. The old one signs beside it for another 24 hours; rotate twice to end it at once."""
    from api.cli.services import run_with_services
    from api.rights import OPERATOR
    from api.rules import application_tokens as minting

    async def work(services: CommandServices) -> str:
        return await services.applications.rotate_webhook_secret(OPERATOR, application_id)

    webhook_secret = run_with_services(work)
    until = datetime.now(UTC) + minting.PREVIOUS_SECRET_LIFETIME
    print_json(
        {
            "applicationId": application_id,
            "webhookSecret": webhook_secret,
            "previousSecretSignsUntil": until.isoformat(timespec="seconds"),
        }
    )


@app.command()
def delete(
    application_id: options.Id,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    _: AlwaysJson = False,
) -> None:
    """Delete an application with everything that it has. Its domains are served no more.

    An interrupted deletion is continued by the same command, or by any API process within half a minute.
    """
    from api.cli.application_deletion import delete_application
    from api.cli.services import run_with_services

    def confirm(words: str) -> None:
        typer.echo(words, err=True)
        if not yes and typer.prompt("Type the application's id to delete it", err=True) != application_id:
            raise OperatorError("that is not the application's id: nothing was deleted")

    removed = run_with_services(lambda services: delete_application(services, application_id, confirm))
    print_json({"applicationId": application_id, "removed": removed})


for _command in (suspend, resume):
    app.command()(_command)


def token(
    application_id: options.Id,
    scope: options.Scope = None,
    domain: options.TokenDomain = None,
    configuration: options.TokenConfiguration = None,
    user: options.TokenUser = None,
    as_json: AsJson = False,
) -> None:
    """Print a JWT that opens the API for 60 minutes, as the application would sign it.

    With --scope connect it is for a browser: it opens the connect modal, for one domain or with one configuration.
    """
    from api.cli.services import run_with_services
    from api.rules import application_tokens as minting
    from common.db.application_secrets import client_secret_identity

    given = {"scope": scope, "domain": domain, "configurationId": configuration, "userId": user}
    claims = {name: str(value) for name, value in given.items() if value is not None}
    if claims and scope is None:
        raise OperatorError(
            "--domain, --configuration and --user bound a token of --scope connect: a full one has no bounds"
        )

    async def work(services: CommandServices) -> str:
        application = await services.application(application_id)
        return services.keyring.open(application.client_secret, client_secret_identity(application_id)).decode()

    minted = minting.mint_api_token(application_id, run_with_services(work), datetime.now(UTC), claims=claims)
    print_result({"applicationId": application_id, "token": minted}, minted, as_json=as_json)


# Parts ---------------------------------------------------------------------------------------------------


def _shown(each: ShownApplication) -> dict[str, Any]:
    """Return all of an application but its secrets."""
    from api.answers.application import response_policy
    from common.endpoint_health import disables_at

    application, endpoint = each.application, each.endpoint
    return {
        "applicationId": application.id,
        "name": application.name,
        "cnameTarget": application.cname_target,
        "secureCnameTarget": application.secure_cname_target,
        "applicationUrl": application.application_url,
        "webhookUrl": application.webhook_url,
        "webhookFailingSince": _time(endpoint.failing_since),
        "webhookDisablesAt": _time(disables_at(endpoint)),
        "webhookDisabledAt": _time(endpoint.disabled_at),
        "webhookLastError": endpoint.last_error,
        "previousWebhookSecretSignsUntil": _time(application.previous_webhook_until),
        "rootPathAccess": list(application.root_path_access),
        "serviceAuth": switched(application.service_auth is not None),
        "serviceAuthRotating": application.next_service_auth is not None,
        "signature": switched(application.signature_key is not None),
        "previousSignatureKeySignsUntil": _time(application.previous_signature_until),
        "sendHost": application.send_host,
        "originServerName": application.origin_server_name,
        "originVerify": switched(application.origin_verify),
        "maintenance": switched(application.maintenance),
        "connect": switched(application.connect),
        "bufferUploadsBytes": application.buffer_uploads_bytes,
        "http2": switched(application.http2),
        "minimumTls": application.minimum_tls,
        "errorStatus": application.error_status,
        "responsePolicy": response_policy(application.response_policy),
        "metadataFields": list(application.metadata_fields),
        "errorPageBytes": each.error_page_bytes,
        "tier": application.tier,
        "organisationId": application.organisation_id,
        "test": application.is_test,
        "previousSecretWorks": application.previous_client_secret is not None,
        "createdAt": _time(application.created_at),
        "deletingSince": _time(application.deleting_at),
        "suspended": None if application.suspension is None else application.suspension.as_json(),
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat(timespec="seconds") if at is not None else None
