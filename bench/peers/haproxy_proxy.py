"""HAProxy, one thread."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import ClassVar

from bench.lab.ports import free_ports
from bench.peers import PROXY_CORE, RunningProxy, Sites
from bench.pinned import server

_MAIN = """
global
  nbthread 1
  maxconn 8192
  tune.ssl.cachesize 0
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  option http-keep-alive
  http-reuse always
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  timeout http-keep-alive 300s
  {log}
frontend edge
  bind 127.0.0.1:{http_port}
  bind 127.0.0.1:{https_port} ssl crt {certificates}/ alpn http/1.1
  http-request set-header X-Forwarded-Host %[req.hdr(host)]
  http-request set-header x-service-forwarded-host %[req.hdr(host),lower,regsub(:.*,)]
  http-request set-header X-Forwarded-For %[src]
  http-request set-header X-Forwarded-IP %[src]
  http-request set-header X-Forwarded-Proto https if {{ ssl_fc }}
  http-request set-header X-Forwarded-Proto http if !{{ ssl_fc }}
  http-request set-header X-Forwarded-Port %[dst_port]
  http-request set-header Via "1.1 haproxy"
  use_backend %[req.hdr(host),field(1,:),lower,map({hosts})]
"""
_BACKEND = """
backend origin_{port}
  http-request set-header Host 127.0.0.1:{port}
  server only 127.0.0.1:{port} pool-max-conn -1{tls}
"""


class HAProxy:
    """HAProxy as a peer."""

    name = "HAProxy"
    needs: ClassVar[dict[str, str]] = {"haproxy": "haproxy"}

    @contextlib.asynccontextmanager
    async def serve(self, sites: Sites) -> AsyncIterator[RunningProxy]:
        """Run HAProxy for the block."""
        http_port, https_port = free_ports(2)
        with tempfile.TemporaryDirectory(prefix="frontage-haproxy-", ignore_cleanup_errors=True) as name:
            directory = Path(name)
            hosts, configuration = directory / "hosts.map", directory / "haproxy.cfg"
            hosts.write_text("".join(f"{host} origin_{port}\n" for host, port in sites.origin_ports.items()))
            main = _MAIN.format(
                http_port=http_port,
                https_port=https_port,
                certificates=sites.certificates,
                hosts=hosts,
                log="log stdout format raw local0\n  option httplog clf" if sites.log else "",
            )
            backends = (
                _BACKEND.format(port=port, tls=" ssl verify none alpn http/1.1" if port in sites.secure_ports else "")
                for port in sorted(set(sites.origin_ports.values()))
            )
            configuration.write_text(main + "".join(backends))
            argv = ["haproxy", "-db", "-f", str(configuration)]
            if sites.log:  # HAProxy writes to descriptors and sockets only
                argv = ["sh", "-c", f"exec {shlex.join(argv)} >> {shlex.quote(str(sites.log))}"]
            async with server(argv, core=PROXY_CORE, log=directory / "output.log", port=http_port) as pid:
                yield RunningProxy(pid, http_port, https_port)
