"""Our templates, and which of them expresses a flow's records.

The files beside this module are templates as providers take them (draft-ietf-dconn-domainconnect, Templates), with
``frontage.example`` where an installation has its own id: `for_installation`.

Rules
    the template with the fewest variables wins: one subdomain, then the root, then the one for any records
    a field of a template is a literal, or one variable and nothing else; each template record stands for one record
    a record in a group that no record of the flow uses is left out by ``groupId``; one without a group is always used
    an SPF text is published whole: its template record replaces texts that begin with ``v=spf1``
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

from common.connect.values import octets_of, zone_file_text
from common.domain_check import spf
from common.domain_check.zone_view import relative_host
from common.flows.requested import Requested
from common.records import APEX, RecordType, normal_value, split_priority

SERVICES: Final = ("subdomain", "root", "records")
"""Ids of our templates, in the order of preference."""

_PLACEHOLDER_ID: Final = "frontage.example"
_TXT_CHUNK_CHARACTERS: Final = 255


@dataclass(frozen=True, slots=True)
class TemplateRecord:
    """A record of a template.

    `value` is the template's ``pointsTo`` or ``data``; `prefix`, of texts that it replaces.
    """

    type: RecordType
    host: str
    value: str
    group: str | None = None
    priority: int | None = None
    prefix: str | None = None


@dataclass(frozen=True, slots=True)
class Template:
    """A template of ours: `service` is its id."""

    service: str
    records: tuple[TemplateRecord, ...]
    requires_host: bool


@dataclass(frozen=True, slots=True)
class Filled:
    """A template with the values for a flow.

    `host` is the subdomain that it is applied to, or nothing; `groups`: those of its records that are used, or none
    for all. `records`: what it writes, by absolute name and type.
    """

    service: str
    host: str
    variables: Mapping[str, str]
    groups: tuple[str, ...]
    records: Mapping[tuple[str, RecordType], frozenset[str]]


@cache
def load_templates() -> tuple[Template, ...]:
    """Return our templates as packaged; they are read once."""
    return tuple(map(_template, map(_content, SERVICES)))


def for_installation(service: str, provider_id: str, name: str, redirect_domain: str) -> dict[str, Any]:
    """Return the template as an operator hands it to providers.

    `provider_id` is also where its public keys are published; `redirect_domain`: the host that people return to.
    """
    content = _content(service)
    assert content["providerId"] == _PLACEHOLDER_ID
    return content | {
        "providerId": provider_id,
        "providerName": name,
        "syncPubKeyDomain": provider_id,
        "syncRedirectDomain": redirect_domain,
    }


def fill_templates(requested: Sequence[Requested], apex: str) -> list[Filled]:
    """Fill every template that expresses the records, the preferred one first."""
    return [filled for each in load_templates() if (filled := fill_template(each, requested, apex)) is not None]


def fill_template(template: Template, requested: Sequence[Requested], apex: str) -> Filled | None:
    """Fill a template with a flow's records.

    None if the template cannot express the records, or has records without a group that the flow does not want.
    """
    names = sorted({each.name(apex) for each in requested})
    host = _common_host(names, apex)
    if not requested or (template.requires_host and not host):
        return None
    scope = f"{host}.{apex}" if host else apex
    free = list(template.records)
    variables: dict[str, str] = {}
    used: list[TemplateRecord] = []
    records: dict[tuple[str, RecordType], frozenset[str]] = {}
    for name, kind, value, priority in _distinct(requested, apex):
        found = next((each for each in free if _expresses(each, name, kind, value, priority, scope)), None)
        if found is None:
            return None
        free.remove(found)
        used.append(found)
        variables |= _bind(found.host, _scoped_host(name, scope)) | _bind(found.value, _presented(kind, value))
        normal = f"{priority or 10} {value}" if kind == "MX" else value
        records[name, kind] = records.get((name, kind), frozenset()) | {normal}
    if any(each.group is None for each in free):
        return None
    groups = tuple(each.group for each in template.records if each in used and each.group) if free else ()
    return Filled(template.service, host, variables, groups, records)


def _distinct(requested: Sequence[Requested], apex: str) -> list[tuple[str, RecordType, str, int | None]]:
    """Return name, type, normal value and priority of each record, each once."""
    found: dict[tuple[str, RecordType, str, int | None], None] = {}
    for each in requested:
        priority, value = split_priority(each.record)
        kind = each.record.type
        number = int(priority or 10) if kind == "MX" else None
        found[each.name(apex), kind, normal_value(kind, value), number] = None
    return list(found)


def _expresses(
    template: TemplateRecord, name: str, kind: RecordType, value: str, priority: int | None, scope: str
) -> bool:
    if template.type != kind or template.priority != priority:
        return False
    if kind == "TXT" and (template.prefix is not None) != spf.is_spf(value):
        return False
    return _variable(template.host) is not None or template.host == _scoped_host(name, scope)


def _bind(field: str, value: str) -> dict[str, str]:
    variable = _variable(field)
    return {} if variable is None else {variable: value}


def _variable(field: str) -> str | None:
    return field[1:-1] if len(field) > 2 and field[0] == field[-1] == "%" else None


def _common_host(names: Sequence[str], apex: str) -> str:
    """Return the longest subdomain that all names below the apex share; nothing if they share none."""
    below = [list(reversed(name.removesuffix(f".{apex}").split("."))) for name in names if name != apex]
    if not below:
        return ""
    shared = []
    for labels in zip(*below, strict=False):
        if len(set(labels)) > 1:
            break
        shared.append(labels[0])
    return ".".join(reversed(shared))


def _scoped_host(name: str, scope: str) -> str:
    """Spell a name as a template's host field has it: ``@``, relative to the scope, or absolute with a final dot."""
    return APEX if name == scope else relative_host(name, scope)


def _presented(kind: RecordType, value: str) -> str:
    """Spell a value in presentation format (RFC 1035 §5.1).

    A text of one string goes without quotes, as the draft allows.
    """
    if kind != "TXT":
        return value
    is_plain = len(octets_of(value)) <= _TXT_CHUNK_CHARACTERS and not any(each in value for each in '"\\')
    return value if is_plain and value.isascii() and value.isprintable() else zone_file_text("TXT", value)


def _content(service: str) -> dict[str, Any]:
    file = resources.files("common.connect.domain_connect").joinpath("templates", f"{service}.json")
    content: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return content


def _template(content: Mapping[str, Any]) -> Template:
    records = tuple(
        TemplateRecord(
            each["type"],
            each["host"],
            each.get("pointsTo") or each["data"],
            each.get("groupId"),
            each.get("priority"),
            each.get("txtConflictMatchingPrefix"),
        )
        for each in content["records"]
    )
    return Template(content["serviceId"], records, content.get("hostRequired", False))
