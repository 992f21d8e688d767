"""`frontage domain power --response-policy`: what a domain's responses carry, set, read back, ended and refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from common.db.pool import Database
from tests.integration.cli import frontage
from tests.integration.cli.test_domains import as_json, env, output, refused

__all__ = ["env"]

SHOP = "shop.customer.test"
POLICY = {"hsts": {"maxAge": 300}, "referrerPolicy": "no-referrer", "fields": {"X-Frame-Options": "DENY"}}


def power(*options: str) -> list[str]:
    return ["domain", "power", SHOP, "--application", "a", *options]


def shown(env: dict[str, str]) -> Any:
    [product] = as_json(env, "domain", "show", SHOP)["products"]
    return product


async def test_a_policy_is_set_read_back_changed_and_ended(database: Database, env: dict[str, str]) -> None:
    output(env, *power("--metadata", "plan=pro", "--visitors", '{"deny": ["192.0.2.0/24"]}'))
    assert shown(env)["responsePolicy"] is None
    assert as_json(env, *power("--response-policy", json.dumps(POLICY)))["outcome"] == "changed"
    kept = shown(env)
    assert kept["responsePolicy"] == POLICY
    assert (kept["metadata"], kept["visitors"]) == ({"plan": "pro"}, {"deny": ["192.0.2.0/24"]}), "left as they were"
    [line] = [each for each in output(env, "domain", "show", SHOP).splitlines() if "response policy" in each]
    assert json.loads(line.removeprefix("    response policy: ")) == POLICY
    assert as_json(env, *power("--response-policy", json.dumps(POLICY)))["outcome"] == "unchanged"
    output(env, *power("--application-url", "https://elsewhere.test"))
    assert shown(env)["responsePolicy"] == POLICY, "a change of something else leaves it"
    output(env, *power("--response-policy", '{"hsts": "off"}'))
    assert shown(env)["responsePolicy"] == {"hsts": "off"}, "in place of all of before"
    assert as_json(env, *power("--response-policy", "{}"))["outcome"] == "changed"
    assert shown(env)["responsePolicy"] is None
    assert "response policy" not in output(env, "domain", "show", SHOP)


@pytest.mark.parametrize("given", ["nosniff", "[]", '{"nosniff": true'])
async def test_what_is_no_json_object_is_refused_as_usage(env: dict[str, str], given: str) -> None:
    done = frontage.run(*power("--response-policy", given), env=env)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: Invalid value for '--response-policy': a JSON object\n" in done.stderr


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"nosnif": True}, "nosnif: there is no such field"),
        ({"hsts": {"maxAge": -1}}, "hsts.maxAge: Input should be greater than or equal to 0"),
        ({"referrerPolicy": "none"}, "referrerPolicy: Input should be 'no-referrer', "),
        ({"hsts": {"maxAge": 31_536_000, "preload": True}}, "hsts: includeSubDomains and preload bind names of your"),
        ({"fields": {"Set-Cookie": "a=b"}}, "fields: Set-Cookie is the origin's alone to send"),
        ({"fields": {"X-A": "ä"}}, "fields: the value of X-A has 1 to 2000 visible ASCII characters and blanks"),
    ],
)
async def test_what_no_response_may_carry_is_refused_and_named(
    database: Database, env: dict[str, str], given: dict[str, Any], words: str
) -> None:
    output(env, *power("--response-policy", json.dumps(POLICY)))
    assert refused(env, *power("--response-policy", json.dumps(given))).startswith(
        f"frontage: {SHOP}: --response-policy: {words}"
    )
    assert shown(env)["responsePolicy"] == POLICY
