"""The SDK as the API serves it."""

from __future__ import annotations

import asyncio
import base64
import gzip
import hashlib
import io
import re
import sys
import tarfile
from asyncio.subprocess import PIPE
from pathlib import Path

import aiohttp
import pytest

from api.operations import OPERATIONS
from api.sdk.assets import VERSION, integrity, load_assets
from tests.integration.api.conftest import Service

LARGEST_GZIPPED_BYTES = 40 * 1024


@pytest.mark.parametrize(
    ("path", "caching"),
    [
        ("v1/frontage.js", "public, max-age=300"),
        (f"{VERSION}/frontage.js", "public, max-age=31536000, immutable"),
    ],
)
async def test_the_script_is_served_to_every_page(service: Service, path: str, caching: str) -> None:
    url = f"{service.url}/sdk/{path}"
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        async with session.get(
            url, headers={"Accept-Encoding": "gzip", "Origin": "https://partner.example"}
        ) as response:
            content = await response.read()
        assert response.status == 200
        assert response.headers["Content-Type"] == "text/javascript; charset=utf-8"
        assert response.headers["Cache-Control"] == caching
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert response.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(content) == load_assets()[path].content
        async with session.get(url, headers={"If-None-Match": response.headers["ETag"]}) as again:
            assert (again.status, await again.read()) == (304, b"")
        async with session.head(url) as head:
            assert head.status == 200


async def test_the_script_with_its_modal_and_any_language_is_small() -> None:
    assets = load_assets()
    words = [len(gzip.compress(asset.content, 6)) for path, asset in assets.items() if "/words/" in path]
    script = len(gzip.compress(assets["v1/frontage.js"].content, 6))
    assert script + max(words, default=0) <= LARGEST_GZIPPED_BYTES


async def test_there_is_no_other_file(service: Service) -> None:
    for path in ("v1/assets.py", "v2/frontage.js", "v1/words/../package.json", "v1/words/xx.json"):
        async with aiohttp.ClientSession() as session, session.get(f"{service.url}/sdk/{path}") as response:
            assert response.status in (401, 404)
            assert set(await response.json()) >= {"message", "request_id"}


async def described_archive(service: Service, kind: str) -> tuple[dict[str, str], bytes]:
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{service.url}/sdk/v1/{kind}.json") as response:
            described = await response.json()
        async with session.get(f"{service.url}/sdk/{described['archive']}") as response:
            return described, await response.read()


def fields_of_client(root: Path) -> dict[str, set[str]]:
    """Return the fields that each model of the client reads, by its name without case and underscores."""
    found = {}
    for path in root.glob("frontage_client/models/*.py"):
        if fields := set(re.findall(r'\bd\.pop\("([^"]+)"', path.read_text("utf-8"))):
            found[path.stem.replace("_", "")] = fields
    return found


async def fields_of_api(service: Service) -> dict[str, set[str]]:
    """Return the fields of each model in ``/openapi.json``, likewise."""
    async with aiohttp.ClientSession() as session, session.get(f"{service.url}/openapi.json") as response:
        schemas = (await response.json())["components"]["schemas"]
    return {
        name.lower().replace("_", ""): set(schema["properties"])
        for name, schema in schemas.items()
        if schema.get("properties")
    }


async def test_the_python_client_is_served_with_its_hash_and_calls_this_api(service: Service, tmp_path: Path) -> None:
    described, content = await described_archive(service, "python")
    assert described["sha256"] == hashlib.sha256(content).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        archive.extractall(tmp_path / "client", filter="data")
    (root,) = (tmp_path / "client").iterdir()
    calls = {path.stem for path in root.glob("frontage_client/api/*/*.py")} - {"__init__"}
    known = {re.sub(r"(?<!^)([A-Z])", r"_\1", each.id).lower() for each in OPERATIONS}
    assert calls == known, "the API has changed: python -m tests.python_client"
    wanted, read = await fields_of_api(service), fields_of_client(root)
    assert {name: read.get(name) for name in wanted} == wanted, "the API has changed: python -m tests.python_client"
    partner = await service.partner()
    program = """
import asyncio, sys
from frontage_client import AuthenticatedClient
from frontage_client.api.application import change_application, get_application
from frontage_client.models import ApplicationChange

async def main(url, application, token):
    of_application = {"headers": {"applicationId": application}, "verify_ssl": False}  # there is no TLS
    client = AuthenticatedClient(url, token, **of_application)
    await change_application.asyncio(client=client, body=ApplicationChange(name="Renamed"))
    print((await get_application.asyncio(client=client)).name)
    wrong = AuthenticatedClient(url, "no token", **of_application)
    refused = await get_application.asyncio_detailed(client=wrong)
    print(refused.status_code.value, refused.parsed.code)

asyncio.run(main(*sys.argv[1:]))
"""
    arguments = ("-c", program, service.url, partner.id, partner.token())
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, cwd=root, stdout=PIPE)
    output, _ = await process.communicate()
    assert output.decode().splitlines() == ["Renamed", "401 token_unsigned"]


async def test_the_npm_package_is_served_with_its_hash(service: Service) -> None:
    described, content = await described_archive(service, "npm")
    assert described["version"] == VERSION
    assert described["integrity"] == f"sha512-{base64.b64encode(hashlib.sha512(content).digest()).decode()}"


def test_the_integrity_hash_is_that_of_the_bytes() -> None:
    assert integrity(b"alert(1)\n").startswith("sha384-")
    assert len(integrity(load_assets()["v1/frontage.js"].content)) == len("sha384-") + 64
