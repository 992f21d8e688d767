"""A typed client generated from ``/openapi.json`` by a public generator: it compiles, and calls the API."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

PACKAGES = ("openapi-typescript@^7.13.0", "openapi-fetch@^0.17.0", "typescript@^5.9.0")
GOOD = """
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";
declare const process: { argv: string[] };
const [, , baseUrl = "", applicationId = "", token = ""] = process.argv;
const headers = { applicationId, Authorization: `Bearer ${token}` };
const client = createClient<paths>({ baseUrl, headers });

const added = await client.POST("/monitor/domains", {
  body: { domain: "customer.test", dnsRecords: [{ type: "A", host: "@", value: "192.0.2.1", ttl: 300 }], userId: "7" },
});
const message: string | undefined = added.data?.message;
const path = { domain_name: "customer.test" };
const found = await client.GET("/monitor/domains/{domain_name}", { params: { path } });
const domain: components["schemas"]["MonitoredDomain"] | undefined = found.data;
const owner: string | null | undefined = domain?.user_id;
const listed = await client.GET("/power", { params: { query: { sort: "-createdAt", search: "shop", size: 5 } } });
const items = listed.data && "items" in listed.data ? listed.data.items.length : -1;
const refused = await client.GET("/monitor/domains/{domain_name}", { params: { path: { domain_name: "none.test" } } });
console.log(JSON.stringify([message, owner, items, refused.response.status, refused.error?.message]));
"""
WRONG = """
import createClient from "openapi-fetch";
import type { paths } from "./api.js";
const client = createClient<paths>({ baseUrl: "" });
await client.GET("/power", { params: { query: { sort: "name" } } });
await client.POST("/power", { body: { domain: 7, applicationUrl: "https://o.test" } });
"""


async def run(*command: str, cwd: Path, env: dict[str, str]) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, cwd=cwd, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    printed, errors = await process.communicate()
    return process.returncode or 0, printed.decode(), errors.decode()


@pytest.mark.skipif(shutil.which("npm") is None, reason="without npm")
@pytest.mark.timeout(400)  # npm installs from the network
async def test_a_generated_client_compiles_and_calls_the_api(
    service: Service, partner: Partner, tmp_path: Path, given_environment: dict[str, str]
) -> None:
    async with service.session.get(f"{service.url}/openapi.json") as response:
        (tmp_path / "openapi.json").write_bytes(await response.read())
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    (tmp_path / "good.ts").write_text(GOOD)
    (tmp_path / "wrong.ts").write_text(WRONG)

    async def succeed(*command: str) -> tuple[str, str]:
        status, printed, errors = await run(*command, cwd=tmp_path, env=given_environment)
        assert status == 0, printed + errors
        return printed, errors

    await succeed("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES)
    programs = tmp_path / "node_modules" / ".bin"
    printed, errors = await succeed(str(programs / "openapi-typescript"), "openapi.json", "-o", "api.d.ts")
    assert "⚠" not in printed + errors, "the document is generated from without a warning"
    tsc = (str(programs / "tsc"), "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom")
    status, problems, _ = await run(*tsc, "good.ts", "wrong.ts", cwd=tmp_path, env=given_environment)
    assert status != 0
    assert "good.ts" not in problems
    assert '"name"' in problems
    assert "'number' is not assignable to type 'string'" in problems

    printed, _ = await succeed("node", "good.js", service.url, partner.id, partner.token())
    assert json.loads(printed)[:4] == ["Domain successfully added", "7", 0, 404]
