"""The npm package: packed, installed into a project of its own, and its types used there."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from api.sdk.assets import HERE, VERSION
from api.sdk.npm_archive import make_npm_archive

TYPESCRIPT = "typescript@^5.9.0"
GOOD = """
import { connectDomain, FrontageError, load, type Closed, type Configuration } from "@frontage/connect";
const config: Configuration = {
  applicationId: "app_1",
  getToken: async () => "token",
  dnsRecords: [{ type: "CNAME", host: "{SUBDOMAIN}", value: "{CNAME_TARGET}", ttl: 300, ssl: true }],
  locale: "de",
  onSuccess: ({ domain, jobId }) => console.log(domain.length, jobId.length),
};
await load({ apiUrl: "https://api.frontage.example" });
const closed: Closed = await connectDomain(config);
const status: "FINISHED_SUCCESSFULLY" | string = closed.lastStatus;
const code: string = new FrontageError("unreachable", "").code;
console.log(status, code);
"""
WRONG = """
import { connectDomain } from "@frontage/connect";
connectDomain({ applicationId: 7, dnsRecords: [{ type: "ALIAS", host: "@", value: "x", ttl: 1 }] });
"""
USED = """
import { checkDomain, VERSION } from "@frontage/connect";
const code = await checkDomain("example.com", { applicationId: "a", token: "t" }).catch((error) => error.code);
console.log(VERSION, code);
"""


def run(*command: str, cwd: Path, env: dict[str, str], is_good: bool = True) -> str:
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=100)
    assert (done.returncode == 0) is is_good, done.stdout + done.stderr
    return done.stdout


@pytest.mark.skipif(shutil.which("npm") is None, reason="without npm")
@pytest.mark.timeout(400)
def test_the_package_installs_and_its_types_hold(tmp_path: Path, given_environment: dict[str, str]) -> None:
    source, project = tmp_path / "source", tmp_path / "project"
    shutil.copytree(HERE, source, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    project.mkdir()
    quiet = ("--no-audit", "--no-fund", "--loglevel=error")
    run("npm", "install", *quiet, cwd=source, env=given_environment)
    packed = json.loads(
        run("npm", "pack", "--json", "--pack-destination", str(tmp_path), cwd=source, env=given_environment)
    )[0]
    names = {file["path"] for file in packed["files"]}
    assert {"frontage.js", "steps/domain.js", "words/ja.json", "types/frontage.d.ts", "package.json"} <= names
    assert not any(name.endswith(".py") for name in names)

    (project / "package.json").write_text('{"type": "module", "private": true}')
    run("npm", "install", *quiet, str(tmp_path / packed["filename"]), TYPESCRIPT, cwd=project, env=given_environment)
    (project / "good.ts").write_text(GOOD)
    (project / "wrong.ts").write_text(WRONG)
    (project / "used.js").write_text(USED)
    tsc = ("npx", "tsc", "--noEmit", "--strict", "--target", "es2022", "--module", "nodenext", "--lib", "es2023,dom")
    problems = run(*tsc, "good.ts", "wrong.ts", cwd=project, env=given_environment, is_good=False)
    assert "good.ts" not in problems
    assert "applicationId" in problems or "'number' is not assignable to type 'string'" in problems
    assert '"ALIAS"' in problems
    version = json.loads((HERE / "package.json").read_text("utf-8"))["version"]
    assert run("node", "used.js", cwd=project, env=given_environment).split() == [version, "invalid_configuration"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="without npm")
@pytest.mark.timeout(400)
def test_the_archive_that_the_api_serves_installs_and_runs(tmp_path: Path, given_environment: dict[str, str]) -> None:
    (tmp_path / "package.json").write_text('{"type": "module", "private": true}')
    (tmp_path / "connect.tgz").write_bytes(make_npm_archive())
    run("npm", "install", "--no-audit", "--no-fund", "./connect.tgz", cwd=tmp_path, env=given_environment)
    (tmp_path / "used.js").write_text(USED)
    assert run("node", "used.js", cwd=tmp_path, env=given_environment).split() == [VERSION, "invalid_configuration"]


def test_equal_sources_make_an_equal_archive() -> None:
    assert make_npm_archive() == make_npm_archive()
