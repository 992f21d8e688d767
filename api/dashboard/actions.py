"""Every action of the dashboard, with the API call and the command that do the same.

A test holds this against the dashboard's routes, the reference and the command line; the handbook prints it. What is
about users, organisations and the installation is called with a user's API key; all else with an application's token
too. What proves that a user is there, or is about a browser's session, has no call.
"""

from __future__ import annotations

from typing import Final, NamedTuple

HERE: Final = "needs the user's browser"
SESSIONS: Final = "about the dashboard's own sessions"
CONFIRMED: Final = "needs a confirmed session, so that a leaked key does not outlive itself"


class Action(NamedTuple):
    """An action of the dashboard.

    `operation`: the id in `api.operations`, or why there is none. `command`: what follows ``frontage``, or why
    there is none. `choice`: the form's `action`, `kind` or `section`, where it has one.
    """

    path: str
    choice: str
    words: str
    operation: str
    command: str


_ORGANISATION: Final = "/organisations/{organisation}"
_APPLICATION: Final = "/applications/{application}"
_DOMAIN: Final = f"{_APPLICATION}/domains/{{name}}"

ACTIONS: Final[tuple[Action, ...]] = (
    Action("/sign-in", "", "Sign in", "createToken", HERE),
    Action("/sign-in/passkey", "", "Sign in with a passkey", HERE, HERE),
    Action("/link/{token}", "", "Sign in by a link", SESSIONS, "user link"),
    Action("/sign-out", "", "Sign out", SESSIONS, "user sign-out"),
    Action("/account/password", "", "Set a password", CONFIRMED, "user set-password"),
    Action("/account/sessions/end", "", "End a session", SESSIONS, "user sign-out"),
    Action("/account/confirm", "", "Confirm by password", HERE, HERE),
    Action("/account/confirm/passkey", "", "Confirm with a passkey", HERE, HERE),
    Action("/account/passkeys", "", "Add a passkey", HERE, HERE),
    Action("/account/passkeys/remove", "", "Remove a passkey", CONFIRMED, "user remove-passkey"),
    Action("/account/keys", "", "Make an API key", CONFIRMED, "user create-key"),
    Action("/account/keys/revoke", "", "Revoke an API key", "revokeKey", "user revoke-key"),
    Action("/organisations", "", "Make an organisation", "createOrganisation", "organisation create"),
    Action(f"{_ORGANISATION}/members", "", "Add a member, set a role", "putMember", "organisation add-member"),
    Action(f"{_ORGANISATION}/members/remove", "", "Remove a member", "removeMember", "organisation remove-member"),
    Action(f"{_ORGANISATION}/members/link", "", "Make a link that signs in", "makeLink", "user link"),
    Action("/applications/new", "", "Make an application", "createApplication", "app create"),
    Action(f"{_APPLICATION}/settings", "general", "Change settings", "changeApplication", "app set"),
    Action(f"{_APPLICATION}/settings", "origin", "Change how the origin is asked", "changeApplication", "app set"),
    Action(f"{_APPLICATION}/settings", "responses", "Choose what responses carry", "changeApplication", "app set"),
    Action(f"{_APPLICATION}/settings", "visitors", "Choose how visitors connect", "changeApplication", "app set"),
    Action(f"{_APPLICATION}/settings", "api", "Choose the statuses of refusals", "changeApplication", "app set"),
    Action(f"{_APPLICATION}/settings", "maintenance", "Turn maintenance on and off", "changeApplication", "app set"),
    Action(f"{_APPLICATION}/settings", "error_page", "Set the error page", "changeApplication", "app set"),
    Action(
        f"{_APPLICATION}/settings",
        "operator",
        "Set tier, connect, organisation",
        "changeApplicationAsOperator",
        "app set",
    ),
    Action(f"{_APPLICATION}/secrets", "client", "Rotate the client secret", "rotateClientSecret", "app rotate-secret"),
    Action(
        f"{_APPLICATION}/secrets",
        "webhook",
        "Rotate the webhook secret",
        "rotateWebhookSecret",
        "app rotate-webhook-secret",
    ),
    Action(f"{_APPLICATION}/secrets", "service_auth", "Switch, rotate X-Service-Auth", "switchServiceAuth", "app set"),
    Action(f"{_APPLICATION}/secrets", "signature", "Switch, rotate the signature", "switchSignature", "app set"),
    Action(f"{_APPLICATION}/delete", "", "Delete an application", "deleteApplication", "app delete"),
    Action("/domains", "recheck", "Check chosen domains now", "recheckDomain", "domain recheck"),
    Action("/domains", "remove", "Stop serving chosen domains", "removePoweredDomain", "domain remove"),
    Action(f"{_APPLICATION}/domains/new", "power", "Power a domain", "powerDomain", "domain power"),
    Action(f"{_APPLICATION}/domains/new", "secure", "Secure a domain", "secureDomain", "domain secure"),
    Action(f"{_APPLICATION}/domains/new", "monitor", "Monitor a domain", "addMonitoredDomain", "domain monitor"),
    Action(_DOMAIN, "power", "Change a powered domain", "changePoweredDomain", "domain power"),
    Action(_DOMAIN, "secure", "Change a secured domain", "changeSecuredDomain", "domain secure"),
    Action(_DOMAIN, "remove_power", "Stop serving a powered domain", "removePoweredDomain", "domain remove"),
    Action(_DOMAIN, "remove_secure", "Stop serving a secured domain", "removeSecuredDomain", "domain remove"),
    Action(_DOMAIN, "renew", "Renew a certificate", "renewCertificate", "certificate renew"),
    Action(_DOMAIN, "bring", "Bring a certificate", "bringCertificate", "certificate bring"),
    Action(_DOMAIN, "request", "Request a certificate's signing", "requestSigning", "certificate request"),
    Action(_DOMAIN, "use_ours", "End an own certificate", "removeOwnCertificate", "certificate use-ours"),
    Action(_DOMAIN, "recheck", "Check the DNS now", "recheckDomain", "domain recheck"),
    Action(_DOMAIN, "status_link", "Make a link to a customer's page", "makeStatusLink", "domain status-link"),
    Action(_DOMAIN, "end_status_link", "Revoke that link", "revokeStatusLink", "domain status-link"),
    Action(_DOMAIN, "transfer", "Transfer a domain", "transferDomain", "domain transfer"),
    Action(_DOMAIN, "free", "Free a name", "freeDomain", "domain release"),
    Action(_DOMAIN, "block", "Block a name", "blockDomain", "domain block"),
    Action(_DOMAIN, "unblock", "Unblock a name", "unblockDomain", "domain unblock"),
    Action(f"{_APPLICATION}/prepared/{{name}}", "", "Prepare a domain no longer", "endPreparation", "domain unprepare"),
    Action(
        f"{_APPLICATION}/monitored/{{name}}",
        "remove",
        "Stop monitoring a name",
        "removeMonitoredDomain",
        "domain remove",
    ),
    Action(f"{_APPLICATION}/webhooks", "test", "Send a test event", "sendTestEvent", "webhook test"),
    Action(f"{_APPLICATION}/webhooks", "enable", "Enable the endpoint", "enableEndpoint", "webhook enable"),
    Action(f"{_APPLICATION}/webhooks", "replay", "Send an event again", "replayEvent", "webhook replay-event"),
    Action(f"{_APPLICATION}/webhooks", "replay_failed", "Send again what failed", "replayDeliveries", "webhook replay"),
)
