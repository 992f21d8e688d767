"""Each action of the dashboard names the API call and the command that do the same, or why there is none."""

from __future__ import annotations

import inspect
import re
from unittest.mock import MagicMock

import typer.main
from typer.core import TyperGroup

from api.cli.__main__ import app
from api.dashboard import actions
from api.dashboard.actions import ACTIONS
from api.dashboard.app import build_dashboard
from api.dashboard.handlers.application_secrets import SecretPages
from api.dashboard.handlers.application_settings import SettingsPages
from api.dashboard.handlers.domains import DomainPages
from api.dashboard.handlers.webhooks import WebhookPages
from api.operations import OPERATIONS
from common.settings import load

REASONS = {actions.HERE, actions.SESSIONS, actions.CONFIRMED}


def choices(path: str) -> set[str]:
    return {each.choice for each in ACTIONS if each.path == f"/applications/{{application}}{path}"}


def cases(function: object) -> set[str]:
    """What a handler distinguishes."""
    return set(re.findall(r'case "(\w+)"', inspect.getsource(function)))  # type: ignore[arg-type]


def test_every_form_of_the_dashboard_is_listed() -> None:
    context = MagicMock(settings=load({}))
    routes = build_dashboard(context).router.routes()
    forms = {route.resource.canonical for route in routes if route.method == "POST" and route.resource is not None}
    assert {each.path for each in ACTIONS} == forms


def test_every_choice_of_a_form_is_listed() -> None:
    assert choices("/domains/{name}") == cases(DomainPages._act)
    assert choices("/domains/new") == cases(DomainPages._add)
    assert choices("/webhooks") == cases(WebhookPages._act)
    assert choices("/secrets") - {"service_auth", "signature"} == cases(SecretPages.post)
    sections = set(re.findall(r'^            "(\w+)": \{$', inspect.getsource(SettingsPages.post), re.M))
    assert choices("/settings") == sections | cases(SettingsPages.post) | {"error_page", "maintenance", "api"}


def test_operations_and_commands_exist() -> None:
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup)
    known = {each.id for each in OPERATIONS}
    for each in ACTIONS:
        assert each.operation in known | REASONS, each
        if each.command not in REASONS:
            group, _, name = each.command.partition(" ")
            commands = root.commands[group]
            assert isinstance(commands, TyperGroup)
            assert name in commands.commands, each
