"""nginx, as the origin everybody gets and as the proxy everybody is measured against."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from bench.peers import LOAD_CORE, PROXY_CORE, Serving
from bench.peers.certificate import write_certificate
from bench.private_stage import free_ports

_START_SECONDS = 10
_KEEP_ALIVE = "keepalive_requests 100000000; keepalive_timeout 300s;"
_COMMON = """
daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log;
events {{ worker_connections 4096; }}
http {{
  access_log off; default_type application/octet-stream; server_tokens off;
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  {keep_alive}
  {servers}
}}
"""
_ORIGIN = """
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 200 "{body}"; }} }}
"""
_PROXY = """
  upstream origin {{ server 127.0.0.1:{origin_port}; keepalive 256; keepalive_requests 100000000; }}
  server {{
    listen 127.0.0.1:{http_port} backlog=4096;
    listen 127.0.0.1:{https_port} ssl backlog=4096;
    ssl_certificate {directory}/chain.pem; ssl_certificate_key {directory}/key.pem;
    ssl_protocols TLSv1.2 TLSv1.3;
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1:{origin_port};
      proxy_set_header X-Forwarded-Host $http_host; proxy_set_header x-service-forwarded-host $host;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-IP $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
"""


class Nginx:
    name = "nginx"
    needs = ("nginx",)

    @contextlib.asynccontextmanager
    async def serve(self, origin_port: int) -> AsyncIterator[Serving]:
        http_port, https_port = free_ports(2)
        with _directory() as directory:
            write_certificate(directory)
            servers = _PROXY.format(
                directory=directory, origin_port=origin_port, http_port=http_port, https_port=https_port
            )
            async with _nginx(directory, servers, core=PROXY_CORE, port=http_port) as pid:
                yield Serving(pid, http_port, https_port)


@contextlib.asynccontextmanager
async def nginx_origin(body_bytes: int) -> AsyncIterator[int]:
    """The port of an origin that answers everything with a body of that size."""
    (port,) = free_ports(1)
    with _directory() as directory:
        servers = _ORIGIN.format(port=port, body="x" * body_bytes)
        async with _nginx(directory, servers, core=LOAD_CORE, port=port):
            yield port


@contextlib.contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="frontage-nginx-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@contextlib.asynccontextmanager
async def _nginx(directory: Path, servers: str, *, core: int, port: int) -> AsyncIterator[int]:
    configuration = directory / "nginx.conf"
    configuration.write_text(_COMMON.format(directory=directory, keep_alive=_KEEP_ALIVE, servers=servers))
    process = await asyncio.create_subprocess_exec(
        *("taskset", "-c", str(core), "nginx", "-p", str(directory), "-c", str(configuration)),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await _listening(port, process, directory)
        yield process.pid
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _listening(port: int, process: asyncio.subprocess.Process, directory: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while time.monotonic() < deadline and process.returncode is None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        await asyncio.sleep(0.02)
    log = directory / "error.log"
    raise RuntimeError(f"nginx did not start: {log.read_text()[-300:] if log.exists() else 'no log'}")
