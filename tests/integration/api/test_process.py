"""``python -m api`` as an operator starts it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import aiohttp

from bench.lab.ports import free_ports
from common.builds import read_build
from common.db.pool import Database
from common.secrets import load_keyring
from tests.integration.cli.frontage import environment, run

ROOT = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS = 90.0  # a process takes seconds to start on a busy machine


def start(dsn: str, state_dir: Path, listen: str, *, admin: str = "off", public_url: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "api"],
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "FRONTAGE_DATABASE_URL": dsn,
            "FRONTAGE_STATE_DIR": str(state_dir),
            "FRONTAGE_API_LISTEN": listen,
            "FRONTAGE_API_ADMIN": admin,
            "FRONTAGE_PUBLIC_URL": public_url,
        },
        cwd="/",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def test_it_says_when_it_serves_and_leaves_when_told(
    database: Database, dsn: str, tmp_path: Path, probe_port: int
) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    admin = f"127.0.0.1:{free_ports(1)[0]}"
    process = start(dsn, tmp_path, f"127.0.0.1:{probe_port}", admin=admin)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        url = f"http://127.0.0.1:{probe_port}/readyz"
        async with aiohttp.ClientSession() as session:
            async with session.get(url) as response:
                assert response.status == 200
            for path in ("/healthz", "/readyz"):
                async with session.get(f"http://{admin}{path}") as response:
                    assert response.status == 200
            async with session.get(f"http://{admin}/metrics") as response:
                text = await response.text()
                assert 'frontage_api_requests_total{method="GET",route="/readyz",status="200"} 1.0' in text
                assert "process_resident_memory_bytes" in text
            async with database.transaction() as connection:
                await connection.execute("update alembic_version set version_num = '9999'")  # an upgrade has begun
            async with session.get(url) as response:
                assert response.status == 200
            async with session.get(f"http://{admin}/readyz") as response:
                assert response.status == 200
                assert "newer than this program" in (await response.json())["notice"]
            async with session.get(f"http://{admin}/metrics") as response:
                build = read_build()
                expected = f'frontage_build_info{{commit="{build.commit or ""}",version="{build.version}"}} 1.0'
                assert expected in (await response.text()).splitlines()
            async with database.transaction() as connection:  # and one that breaks what runs
                await connection.execute("comment on table alembic_version is 'works with programs from schema 9999'")
            async with session.get(f"http://{admin}/readyz") as response:
                assert response.status == 503
                assert "does not work with it" in (await response.json())["reason"]
        process.send_signal(signal.SIGTERM)
        output, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.communicate()

    assert (process.returncode, output, complaints) == (0, "", "")


async def test_a_port_in_use_is_one_line(dsn: str, tmp_path: Path) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        expect_complaint(start(dsn, tmp_path, f"127.0.0.1:{taken.getsockname()[1]}"), "FRONTAGE_API_LISTEN")


async def test_an_admin_port_in_use_is_one_line(dsn: str, tmp_path: Path, probe_port: int) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        admin = f"127.0.0.1:{taken.getsockname()[1]}"
        expect_complaint(start(dsn, tmp_path, f"127.0.0.1:{probe_port}", admin=admin), "FRONTAGE_API_ADMIN")


async def test_secrets_in_plain_text_are_logged_and_in_the_status(dsn: str, tmp_path: Path, probe_port: int) -> None:
    load_keyring(tmp_path / "master.key", create=True)
    public_url = "http://api.acme.example"
    process = start(dsn, tmp_path, f"127.0.0.1:{probe_port}", public_url=public_url)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        env = environment(tmp_path, DATABASE_URL=dsn, PUBLIC_URL=public_url)
        status = await asyncio.to_thread(run, "status", "--json", env=env)
        assert "in plain text" in json.loads(status.stdout)["problems"][0]
        process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.communicate()
    [line] = complaints.splitlines()
    assert "secrets cross a network in plain text" in line
    assert public_url in line


async def test_a_missing_master_key_is_one_line(dsn: str, tmp_path: Path, probe_port: int) -> None:
    expect_complaint(start(dsn, tmp_path, f"127.0.0.1:{probe_port}"), "no master key")


def expect_complaint(process: subprocess.Popen[str], words: str) -> None:
    try:
        output, complaints = process.communicate(timeout=PATIENCE_SECONDS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, output) == (1, "")
    assert len(complaints.splitlines()) == 1
    assert words in complaints
