"""The API as the modal sees it, by script: one flow, and what each request makes of it.

Stands at our own protocol, in the browser's requests: no socket, and every answer when the test wants it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from playwright.async_api import BrowserContext, Page, Route

from api import sdk
from api.sdk.assets import load_assets

API = "https://api.frontage.example"
PAGE = "https://partner.example/"
SOURCES = Path(sdk.__file__).parent
SCRIPT = f"{API}/sdk/v1/frontage.js"
RECORD = {
    "type": "CNAME",
    "host": "shop",
    "value": "apps.partner.example",
    "ttl": 300,
    "status": "missing",
    "manual": {"host": "shop", "value": "apps.partner.example."},
}
ADD = {
    "action": "add",
    "name": "shop.customer.example",
    "host": "shop",
    "type": "CNAME",
    "ttl": 300,
    "before": [],
    "after": ["apps.partner.example"],
}
REPLACE = ADD | {"action": "replace", "type": "A", "before": ["192.0.2.10"], "after": []}
MERGE = {
    "action": "merge",
    "name": "customer.example",
    "host": "@",
    "type": "TXT",
    "ttl": 300,
    "before": ["v=spf1 include:_spf.mail.example ~all"],
    "after": ["v=spf1 include:_spf.mail.example include:_spf.partner.example ~all"],
}
WAYS: list[dict[str, Any]] = [
    {"way": "domain_connect", "provider": "Cloudline"},
    {
        "way": "provider_api",
        "provider": "Cloudline",
        "tokenUrl": "https://dash.cloudline.example/profile/api-tokens",
        "leastRight": "Zone, DNS, Edit, for this zone only",
        "fields": [{"name": "auth_token", "label": "API token", "isSecret": True, "isRequired": True}],
    },
    {"way": "dynamic_update", "fields": []},
    {"way": "manual", "fieldNames": {"host": "Name", "value": "Target"}, "hostStyle": "relative"},
]
CONFIG = {
    "applicationId": "app_1",
    "token": "token-1",
    "applicationName": "Acme Shops",
    "dnsRecords": [{"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "ssl": True}],
}
_CHOOSING: dict[str, Any] = {
    "id": "flw_1",
    "job_id": "job_1",
    "state": "choosing",
    "version": 1,
    "domain": None,
    "subdomain": None,
    "host": None,
    "user_id": None,
    "warnings": [],
    "steps": None,
    "provider": None,
    "ways": None,
    "recordConflicts": None,
    "records": [],
    "plan": None,
    "way": None,
    "setup_type": None,
    "written": None,
    "handover": None,
    "propagation": None,
    "enrolments": [],
    "error": None,
}
CHOSEN = {"domain": "customer.example", "subdomain": "shop", "host": "shop.customer.example", "records": [RECORD]}
CHECKING = CHOSEN | {"state": "checking", "steps": {"provider": "running", "records": "waiting", "ways": "waiting"}}
PLANNED: dict[str, Any] = CHOSEN | {
    "state": "planned",
    "steps": {"provider": "done", "records": "done", "ways": "done"},
    "provider": {"id": "cloudline", "name": "Cloudline", "helpUrl": "https://help.cloudline.example/dns"},
    "ways": WAYS,
    "plan": {"digest": "d1", "isEmpty": False, "changes": [ADD]},
}
SPF = {
    "type": "TXT",
    "host": "@",
    "value": "v=spf1 include:_spf.partner.example ~all",
    "ttl": 300,
    "status": "missing",
    "manual": {"host": "@", "value": "v=spf1 include:_spf.partner.example ~all"},
}
CONFLICTED: dict[str, Any] = PLANNED | {
    "records": [RECORD, SPF],
    "plan": {"digest": "d2", "isEmpty": False, "changes": [REPLACE, ADD, MERGE]},
}
WRITTEN = [{**change, "status": "written"} for change in (REPLACE, ADD)]

Script = Callable[[dict[str, Any]], Mapping[str, Any]]


class ScriptedApi:
    """`on` maps an action (``create``, ``domain``, ``apply``, …) to the changes it makes to the flow, or to a status
    and body that refuse it. While `may_answer` is not set, actions change the flow and wait for their answer. Keeps
    each request's method, path, headers and body."""

    def __init__(self) -> None:
        self.flow = dict(_CHOOSING)
        self.on: dict[str, Mapping[str, Any] | tuple[int, Mapping[str, Any]]] = {"create": CHECKING, "domain": CHECKING}
        self.preparation: dict[str, Any] = {"isOffered": False, "isNeeded": False, "domains": []}
        self.requests: list[tuple[str, str, dict[str, str], Any]] = []
        self.is_reachable = True
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.headers: dict[str, str] = {}
        self.page_html = ""
        self._assets = load_assets()
        self._changed = asyncio.Event()

    def set(self, **changes: Any) -> None:
        """Of the flow, as if the monitor had done it."""
        self.flow |= changes | {"version": self.flow["version"] + 1}
        self._changed.set()

    def tokens(self) -> list[str]:
        return [
            headers.get("authorization", "") for _, path, headers, _ in self.requests if path.startswith("/connect")
        ]

    def bodies(self, action: str) -> list[Any]:
        return [body for method, path, _, body in self.requests if method == "POST" and path.endswith(action)]

    async def serve(self, context: BrowserContext) -> None:
        await context.route("**/*", self._answer)

    async def _answer(self, route: Route) -> None:
        request = route.request
        url = request.url.split("?")[0]
        if url == PAGE:
            await route.fulfill(body=self.page_html, content_type="text/html", headers=self.headers)
        elif not self.is_reachable:
            await route.abort("internetdisconnected")
        elif url.startswith(f"{API}/source/"):
            source = (SOURCES / url.removeprefix(f"{API}/source/")).read_bytes()
            cors = {"Access-Control-Allow-Origin": "*"}
            await route.fulfill(body=source, content_type="text/javascript", headers=cors)
        elif url.startswith(f"{API}/sdk/"):
            asset = self._assets.get(url.removeprefix(f"{API}/sdk/"))
            cors = {"Access-Control-Allow-Origin": "*"}
            if asset is None:
                await route.fulfill(status=404, json={"message": "Not Found"}, headers=cors)
            else:
                await route.fulfill(body=asset.content, content_type=asset.content_type, headers=cors)
        elif url.startswith(API):
            await self._answer_api(route, url.removeprefix(API))
        else:
            await route.fulfill(body="another site", content_type="text/html")

    async def _answer_api(self, route: Route, path: str) -> None:
        request = route.request
        cors = {"Access-Control-Allow-Origin": "*", "Access-Control-Allow-Headers": "*"}
        if request.method == "OPTIONS":
            await route.fulfill(status=204, headers=cors)
            return
        body = json.loads(request.post_data) if request.post_data else None
        self.requests.append((request.method, path, await request.all_headers(), body))
        if path.endswith("/events") and "events" not in self.on:
            data = f"event: flow\nid: {self.flow['version']}\ndata: {json.dumps(self.flow)}\n\n"
            await route.fulfill(body=data, content_type="text/event-stream", headers=cors)
            return
        action = "create" if path == "/connect/flows" else path.rsplit("/", 1)[1]
        made = self.on.get(action, {})
        if isinstance(made, tuple):
            await route.fulfill(status=made[0], json=made[1], headers=cors)
            return
        if action == "prepare":
            self.preparation |= made if request.method == "POST" else {}
            await route.fulfill(status=200, json=self.preparation, headers=cors)
            return
        if action == "share":
            await route.fulfill(status=201, json=made, headers=cors)
            return
        if request.method == "POST":
            self.set(**made)
            await self.may_answer.wait()
        await route.fulfill(status=200, json=self.flow, headers=cors)


async def open_page(
    context: BrowserContext,
    api: ScriptedApi,
    *,
    head: str = "",
    body: str = "",
    headers: Mapping[str, str] | None = None,
) -> Page:
    """A partner's page with the SDK on it."""
    api.headers = dict(headers or {})
    api.page_html = (
        f'<!doctype html><html lang="en"><head><title>Partner</title>{head}<script src="{SCRIPT}"></script></head>'
        f"<body>{body or '<main><h1>Settings</h1><button id=connect>Connect</button></main>'}</body></html>"
    )
    await api.serve(context)
    page = await context.new_page()
    await page.goto(PAGE)
    return page


async def connect(page: Page, config: Mapping[str, Any] | None = None, callbacks: str = "{}") -> None:
    """Open the modal; `callbacks` is JavaScript for keys that JSON cannot have."""
    await page.evaluate(
        "([config, callbacks]) => { window.outcome = null;"
        " frontage.connectDomain({...config, ...eval('(' + callbacks + ')')})"
        ".then(detail => { window.outcome = detail }, error => { window.failed = {code: error.code, key: error.key,"
        " message: error.message} }) }",
        [dict(config or CONFIG), callbacks],
    )


async def shows(page: Page, step: str) -> None:
    await page.wait_for_selector(f"frontage-connect dialog[data-step={step}]")
