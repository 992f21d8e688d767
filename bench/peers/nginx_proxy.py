"""nginx, the reference of the comparison; and the pieces of configuration its origin shares with it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from bench.lab.ports import free_ports
from bench.peers import PROXY_CORE, RunningProxy, Sites
from bench.pinned import server

_MAIN = """
daemon off; worker_processes 1; pid {directory}/pid; error_log {directory}/error.log;
events {{ worker_connections 16384; }}
http {{
  {log} default_type application/octet-stream; server_tokens off;
  client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy; fastcgi_temp_path {directory}/fastcgi;
  uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  keepalive_requests 100000000; keepalive_timeout 300s;
  {servers}
}}
"""
_COMMON = """
  server_names_hash_max_size 8192; server_names_hash_bucket_size 128;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_session_cache off;
  proxy_http_version 1.1; proxy_max_temp_file_size 0;
  map $http_upgrade $onward { default upgrade; "" ""; }
"""
_UPSTREAM = """
  upstream origin_{port} {{ server 127.0.0.1:{port}; keepalive 256; keepalive_requests 100000000; }}
"""
_SITE = """
  server {{
    listen 127.0.0.1:{http_port}; listen 127.0.0.1:{https_port} ssl http2;
    server_name {host}; ssl_certificate {certificate}; ssl_certificate_key {certificate};
    location / {{
      proxy_pass {scheme}://origin_{port}; proxy_ssl_server_name on; proxy_ssl_name {host};
      proxy_set_header Host 127.0.0.1:{port};
      proxy_set_header Connection $onward; proxy_set_header Upgrade $http_upgrade;
      proxy_set_header X-Forwarded-Host $http_host; proxy_set_header x-service-forwarded-host $host;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-IP $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Port $server_port;
      proxy_set_header Via "1.1 nginx";
    }}
  }}
"""


class Nginx:
    """nginx as a peer."""

    name = "nginx"
    needs: ClassVar[dict[str, str]] = {"nginx": "nginx-light"}

    @contextlib.asynccontextmanager
    async def serve(self, sites: Sites) -> AsyncIterator[RunningProxy]:
        """Run nginx for the block."""
        http_port, https_port = free_ports(2)
        servers = proxy_servers(sites, http_port, https_port)
        async with nginx(servers, core=PROXY_CORE, port=http_port, log=sites.log) as pid:
            yield RunningProxy(pid, http_port, https_port)


def proxy_servers(sites: Sites, http_port: int, https_port: int) -> str:
    """Return the part of the configuration that makes nginx a proxy before the sites."""
    servers = [_COMMON, *(_UPSTREAM.format(port=port) for port in sorted(set(sites.origin_ports.values())))]
    for host, port in sites.origin_ports.items():
        certificate = sites.certificate(host)
        servers.append(
            _SITE.format(
                host=host,
                port=port,
                scheme=sites.scheme(host),
                http_port=http_port,
                https_port=https_port,
                certificate=certificate,
            )
        )
    return "".join(servers)


def command(directory: Path, servers: str, log: Path | None = None) -> list[str]:
    """Write the configuration into the directory, and return the command that runs nginx with it."""
    os.chmod(directory, 0o755)  # its worker is another user when we are root
    configuration = directory / "nginx.conf"
    configuration.write_text(
        _MAIN.format(
            directory=directory, servers=servers, log=f"access_log {log} combined;" if log else "access_log off;"
        )
    )
    return ["nginx", "-p", str(directory), "-c", str(configuration), "-e", str(directory / "error.log")]


@contextlib.asynccontextmanager
async def nginx(servers: str, *, core: int, port: int, log: Path | None = None) -> AsyncIterator[int]:
    """Run an nginx with these servers for the block, and yield its pid; one of the servers listens on `port`."""
    with tempfile.TemporaryDirectory(prefix="frontage-nginx-", ignore_cleanup_errors=True) as name:
        directory = Path(name)
        argv = command(directory, servers, log)
        async with server(argv, core=core, log=directory / "output.log", port=port) as pid:
            yield pid
