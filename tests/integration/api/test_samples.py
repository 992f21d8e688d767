"""The programs that the handbook prints, run as a reader would run them: in curl, Node, Python, PHP and Go."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import jwt
import pytest

from api.operations import OPERATIONS
from api.pages.samples import LANGUAGES, write_samples
from api.reference.calls import example_call
from bench.lab.ports import free_ports
from tests.children import ROOT
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.waiting import until

QUICK_START = (Path(ROOT) / "api/handbook/quick-start.md").read_text("utf-8")
RUNNERS: Mapping[str, tuple[str, ...]] = {
    "sh": ("bash", "-eu"),
    "js": ("node",),
    "python": (sys.executable,),
    "php": ("php",),
    "go": ("go", "run"),  # a server is built first: `go run` does not pass signals on
}
FILES = {"sh": "sample.sh", "js": "sample.mjs", "python": "sample.py", "php": "sample.php", "go": "sample.go"}
CALLS = (
    "createToken",
    "getPower",
    "powerDomain",
    "removePoweredDomain",
    "diagnoseDomain",
    "getConfiguration",
    "getAudit",
)

pytestmark = pytest.mark.parametrize("language", LANGUAGES)


@pytest.fixture
def sample(language: str, tmp_path: Path) -> Path:
    if shutil.which(RUNNERS[language][0]) is None:
        pytest.skip(f"without {RUNNERS[language][0]}")
    return tmp_path / FILES[language]


def printed(run: str, language: str) -> str:
    """The code of the handbook in this language, of the blocks that follow the comment."""
    blocks = QUICK_START.partition(f"<!-- run: {run} -->\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", blocks, re.DOTALL)
    assert found is not None
    return found[1]


@asynccontextmanager
async def running(
    language: str, sample: Path, environment: Mapping[str, str], *options: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    argv = (*RUNNERS[language], *options, str(sample)) if sample.suffix else (str(sample),)
    process = await asyncio.create_subprocess_exec(
        *argv, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def run(language: str, sample: Path, environment: Mapping[str, str]) -> str:
    async with running(language, sample, environment) as process:
        shown, _ = await process.communicate()
        assert process.returncode == 0, shown.decode()
        return shown.decode()


def environment_of(given: Mapping[str, str], partner: Partner, tmp_path: Path, **more: str) -> dict[str, str]:
    known = {
        "API": partner.url,
        "APPLICATION_ID": partner.id,
        "CLIENT_SECRET": partner.secret,
        "TOKEN": partner.token(),
    }
    return {"HOME": str(tmp_path), **given, **known, **more}  # Go keeps what it has compiled in HOME


async def test_the_quick_start_powers_a_domain(
    language: str, sample: Path, service: Service, partner: Partner, given_environment: dict[str, str], tmp_path: Path
) -> None:
    service.point("shop.customer.test")
    sample.write_text(printed("connect", language))
    wanted = {"DOMAIN": "shop.customer.test", "APPLICATION_URL": "http://127.0.0.1:1/shop"}
    shown = await run(language, sample, environment_of(given_environment, partner, tmp_path, **wanted))
    assert "true" in shown.lower()
    assert "Domain successfully powered." in shown
    listed = await partner.get()
    assert [each["domain"] for each in listed.body["items"]] == ["shop.customer.test"]


async def test_the_quick_starts_server_hands_out_tokens_for_the_modal(
    language: str, sample: Path, partner: Partner, given_environment: dict[str, str], tmp_path: Path
) -> None:
    sample.write_text(printed("server", language))
    (port,) = free_ports(1)
    environment = environment_of(given_environment, partner, tmp_path, PORT=str(port))
    if language == "sh":
        token = (await run(language, sample, environment)).split('"')[3]
    else:
        options = ("-S", f"127.0.0.1:{port}") if language == "php" else ()
        if language == "go":
            built = sample.with_suffix("")
            builder = await asyncio.create_subprocess_exec("go", "build", "-o", built, sample, env=environment)
            assert await builder.wait() == 0
            sample = built
        async with running(language, sample, environment, *options) as process:
            token = await token_of(f"http://127.0.0.1:{port}", process)
    claims = jwt.decode(token, partner.secret, algorithms=["HS256"])
    assert (claims["scope"], claims["userId"]) == ("connect", "user-7")


async def token_of(url: str, process: asyncio.subprocess.Process) -> str:
    async with aiohttp.ClientSession() as session:

        async def ask() -> str:
            assert process.returncode is None
            async with session.post(f"{url}/frontage-token") as response:
                assert response.status == 200
                token: str = (await response.json())["token"]
                return token

        token = await until(ask, "the server answers", pending=(aiohttp.ClientConnectorError,))
        async with session.get(f"{url}/frontage-token") as response:
            assert response.status in (404, 501)
        return token


async def test_the_samples_of_operations_are_answered(
    language: str, sample: Path, service: Service, partner: Partner, given_environment: dict[str, str], tmp_path: Path
) -> None:
    """One of each kind: open, with a query, with a body, with a DELETE that has one, with names in the path."""
    environment = environment_of(given_environment, partner, tmp_path)
    for operation in (each for each in OPERATIONS if each.id in CALLS):
        sample.write_text(write_samples(example_call(operation, service.url))[language])
        shown = await run(language, sample, environment)
        assert "message" in shown or "items" in shown or "next" in shown, (operation.id, shown)
        assert ("Unauthorized" in shown) == (operation.id == "createToken"), (operation.id, shown)
        assert "Invalid" not in shown, (operation.id, shown)
