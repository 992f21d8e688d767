"""Caddy, on the one core it is pinned to."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar

from bench.lab.ports import free_ports
from bench.peers import PROXY_CORE, RunningProxy, Sites
from bench.pinned import server

_FORWARDED = {
    "X-Forwarded-Host": ["{http.request.hostport}"],
    "x-service-forwarded-host": ["{http.request.host}"],
    "X-Forwarded-For": ["{http.request.remote.host}"],
    "X-Forwarded-IP": ["{http.request.remote.host}"],
    "X-Forwarded-Proto": ["{http.request.scheme}"],
    "X-Forwarded-Port": ["{http.request.port}"],
    "Via": ["1.1 caddy"],
}


class Caddy:
    """Caddy as a peer."""

    name = "Caddy"
    needs: ClassVar[dict[str, str]] = {"caddy": "caddy"}

    @contextlib.asynccontextmanager
    async def serve(self, sites: Sites) -> AsyncIterator[RunningProxy]:
        """Run Caddy for the block."""
        http_port, https_port = free_ports(2)
        with tempfile.TemporaryDirectory(prefix="frontage-caddy-", ignore_cleanup_errors=True) as name:
            directory = Path(name)
            configuration = directory / "caddy.json"
            configuration.write_text(json.dumps(_configuration(sites, http_port, https_port)))
            argv = ["caddy", "run", "--config", str(configuration)]
            own = {"HOME": name, "XDG_DATA_HOME": name, "XDG_CONFIG_HOME": name}
            async with server(argv, core=PROXY_CORE, log=directory / "output.log", port=http_port, **own) as pid:
                yield RunningProxy(pid, http_port, https_port)


def _configuration(sites: Sites, http_port: int, https_port: int) -> dict[str, Any]:
    pems = [str(sites.certificate(host)) for host in sites.origin_ports]
    common: dict[str, Any] = {"routes": _routes(sites), "automatic_https": {"disable": True}, "protocols": ["h1"]}
    if sites.log:
        common["logs"] = {"default_logger_name": "access"}
    return {
        "admin": {"disabled": True},
        "logging": {"logs": {"default": {"level": "ERROR"}} | _access_log(sites)},
        "apps": {
            "tls": {
                "certificates": {"load_files": [{"certificate": pem, "key": pem} for pem in pems]},
            },
            "http": {
                "servers": {
                    "plain": {"listen": [f"127.0.0.1:{http_port}"], **common},
                    "secure": {"listen": [f"127.0.0.1:{https_port}"], "tls_connection_policies": [{}], **common},
                }
            },
        },
    }


def _access_log(sites: Sites) -> dict[str, Any]:
    if not sites.log:
        return {}
    writer = {"output": "file", "filename": str(sites.log)}
    return {"access": {"writer": writer, "include": ["http.log.access.access"]}}


def _routes(sites: Sites) -> list[dict[str, Any]]:
    hosts: dict[int, list[str]] = {}
    for host, port in sites.origin_ports.items():
        hosts.setdefault(port, []).append(host)
    secure = sites.secure_ports
    return [
        {"match": [{"host": names}], "handle": [_proxy(port, secure=port in secure)], "terminal": True}
        for port, names in hosts.items()
    ]


def _proxy(port: int, *, secure: bool) -> dict[str, Any]:
    return {
        "handler": "reverse_proxy",
        "upstreams": [{"dial": f"127.0.0.1:{port}"}],
        "headers": {"request": {"set": _FORWARDED | {"Host": [f"127.0.0.1:{port}"]}}},
        "transport": {
            "protocol": "http",
            "compression": False,
            **({"tls": {"insecure_skip_verify": True}} if secure else {}),
            "keep_alive": {"max_idle_conns_per_host": 256, "idle_timeout": "300s"},
        },
    }
