"""A flow's row as Postgres holds it, with all that its JSON columns can have."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from common.names import parse_domain

AT = datetime(2026, 11, 21, 12, 30, 15, 120, tzinfo=UTC)
LATER = AT + timedelta(days=60)
NAME = parse_domain("shop.customer.test")
STORED_FLOW: dict[str, Any] = {
    "id": "flw_1", "application_id": "app_1", "job_id": "job_1", "user_id": "u", "state": "propagating", "version": 3,
    "config": {}, "warnings": ["w"], "domain": "customer.test", "subdomain": "shop",
    "requested": [
        {
            "type": "MX", "host": "@", "value": "mx.test", "ttl": 300, "priority": "10", "product": None,
            "applicationUrl": None, "redirectTo": None, "powerRootPathAccess": None, "monitor": True,
        },
        {
            "type": "CNAME", "host": "shop", "value": "apps.test", "ttl": 60, "product": "power",
            "applicationUrl": "https://o.test", "redirectTo": None, "powerRootPathAccess": ["/s"], "monitor": False,
        },
    ],
    "looked": {
        "steps": {"provider": "done", "records": "done", "ways": "done"},
        "provider": {
            "id": "p", "name": "Provider", "helpUrl": None, "setupType": "automatic",
            "domainConnect": {"isOpen": False, "code": "not_expressible", "message": "No template."},
        },
        "ways": [
            {
                "way": "domain_connect", "provider": "Provider", "template": "power", "width": 750, "height": 600,
                "controlPanelUrl": None,
            },
            {
                "way": "provider_api", "api": "p", "provider": "Provider", "tokenUrl": "https://p.test/t",
                "leastRight": "Edit.", "isOwnServer": False,
                "fields": [{"name": "auth_token", "label": "API token", "isSecret": True, "isRequired": True}],
            },
            {
                "way": "manual",
                "fieldNames": {"type": "Type", "host": "Host", "value": "Value", "ttl": "TTL", "priority": "Priority"},
                "hostStyle": "relative",
                "records": [{"host": "@", "value": "mx.test"}, {"host": "shop", "value": "apps.test"}],
                "helpUrl": "https://p.test/help",
            },
            {
                "way": "dynamic_update", "isExpert": True,
                "fields": [{"name": "key_name", "label": "Name", "isSecret": False, "isRequired": True}],
            },
            {
                "way": "provider_api", "api": "powerdns", "provider": "PowerDNS", "tokenUrl": "https://d.test/t",
                "leastRight": "The key.", "isOwnServer": True, "fields": [], "isExpert": True,
            },
        ],
        "conflicts": [
            {
                "host": "@", "type": "MX", "value": "old.test", "priority": "5", "code": "other_value",
                "reason": "It is old.", "suggested": None,
            },
            {
                "host": "@", "type": "TXT", "value": "v=spf1 -all", "code": "spf", "reason": "One SPF record.",
                "suggested": "v=spf1 a -all",
            },
        ],
        "server": "ns1.p.test",
    },
    "plan": {
        "digest": "afe9c44c676412c841ed9c187f9dfaaa", "isEmpty": False, "blocked": ["It is blocked."],
        "changes": [
            {
                "action": "replace", "name": "customer.test", "host": "@", "type": "MX", "before": ["5 old.test"],
                "after": ["10 mx.test"], "ttl": 300, "before_ttl": 60, "reason": "It is old.",
            }
        ],
    },
    "way": "provider_api",
    "journal": [
        {
            "action": "replace", "name": "customer.test", "host": "@", "type": "MX", "before": ["5 old.test"],
            "after": ["10 mx.test"], "ttl": 300, "before_ttl": 60, "reason": "It is old.", "status": "written",
        }
    ],
    "statuses": [{"status": "propagated"}],
    "enrolments": [
        {
            "product": "power", "name": NAME.text, "status": "success", "applicationUrl": "https://o.test",
            "redirectTo": None, "powerRootPathAccess": ["/s"], "url": "https://shop.customer.test/",
        },
        {
            "product": "secure", "name": "customer.test", "status": "failed", "applicationUrl": None,
            "redirectTo": "https://shop.customer.test/", "powerRootPathAccess": None, "code": "held", "hint": "Held.",
        },
        {
            "product": "monitor", "name": NAME.text, "subdomain": "shop", "status": "success",
            "records": [{"type": "MX", "host": "@", "value": "mx.test", "ttl": 300, "priority": "10"}],
            "unchanged": True,
        },
    ],
    "handover": {"url": "https://dc.test", "returned": "done", "error": None, "description": None},
    "error": {"code": "wrong_token", "message": "It is wrong.", "hint": "Make a new one.", "fields": ["auth_token"]},
    "created_at": AT, "updated_at": LATER, "since": AT, "looks": 4, "completed_at": None, "added_at": None,
    "erase_at": LATER, "due_at": LATER, "fence": 1, "attempts": 0, "request_id": None, "vouched": True,
    "by_browser": False, "share_id": None, "configuration_id": None, "secret_generation": None, "by_key": None,
}  # fmt: skip
