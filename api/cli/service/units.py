"""The files that run the roles on a server: systemd units, a system user, an environment, a container."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from string import Template
from typing import Final


class Role(StrEnum):
    """A role that a unit starts."""

    EDGE = "edge"
    API = "api"
    MONITOR = "monitor"


ROLES: Final = tuple(Role)

SYSTEMD: Final = "/etc/systemd/system"
ENVIRONMENT_FILE: Final = "/etc/frontage/frontage.env"
API_LISTEN: Final = "127.0.0.1:8000"

_DESCRIPTIONS: Final[Mapping[Role, str]] = {
    Role.EDGE: "Frontage edge: proxy for customers' domains",
    Role.API: "Frontage API and dashboard",
    Role.MONITOR: "Frontage monitor: certificates, checks, deliveries",
}
_SERVICE = Template("""\
[Unit]
Description=$description
After=network-online.target
Wants=network-online.target
# Restarted for ever: systemd gives up after five starts in ten seconds, and then closes the edge's ports too.
StartLimitIntervalSec=0

[Service]
Type=exec
User=frontage
Group=frontage
EnvironmentFile=$environment_file
Environment=FRONTAGE_STATE_DIR=/var/lib/frontage
ExecStart=$program $role
${special}Restart=always
RestartSec=1
KillMode=mixed
LimitNOFILE=1048576
StateDirectory=frontage
StateDirectoryMode=0700
UMask=0077
CapabilityBoundingSet=
NoNewPrivileges=yes
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
ProtectControlGroups=yes
ProtectProc=invisible
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallErrorNumber=EPERM

[Install]
WantedBy=multi-user.target
""")
_SPECIAL: Final[Mapping[Role, str]] = {
    # systemd holds the ports: clients queue while the role restarts, and no role needs a capability to bind them.
    # TimeoutStopSec is above the drain's 10 s.
    Role.EDGE: """\
ExecReload=/bin/kill -USR2 $MAINPID
Sockets=frontage-http.socket frontage-https.socket
TimeoutStopSec=30
""",
    Role.API: """\
Sockets=frontage-api.socket
TimeoutStopSec=30
""",
    Role.MONITOR: "",
}
_SOCKET = Template("""\
[Unit]
Description=Frontage $role: $listen

[Socket]
$listeners
ReusePort=yes
Backlog=4096
FileDescriptorName=$name
Service=frontage-$role.service

[Install]
WantedBy=sockets.target
""")
_ENVIRONMENT = """\
# What every role of this installation needs; all variables: the handbook, Settings. Readable by root alone.
# Keep the single quotes: systemd and a shell read them alike, whatever characters a password or an address has.
FRONTAGE_DATABASE_URL='postgresql://frontage:password@db.example/frontage?sslmode=require&connect_timeout=5'
FRONTAGE_EDGE_HTTP='0.0.0.0:80'
FRONTAGE_EDGE_HTTPS='0.0.0.0:443'
FRONTAGE_POWER_TARGET='power.example.com'
FRONTAGE_SSL_TARGET='secure.example.com'
FRONTAGE_SERVICE_SERVERS='192.0.2.1'
FRONTAGE_PUBLIC_URL='https://api.example.com'
"""
_USER = 'u frontage - "Frontage" /var/lib/frontage\n'
_CONTAINER = Template("""\
# podman build -t frontage .
# podman run --env-file frontage.env -v frontage:/var/lib/frontage frontage migrate
# podman run --env-file frontage.env -v frontage:/var/lib/frontage --stop-timeout 30 frontage edge
# frontage.env has one FRONTAGE_NAME=value a line, without quotes: podman and docker would make them part of the value.
FROM docker.io/library/python:3.13-slim AS build
COPY . /source
RUN python -m venv /opt/frontage \\
    && /opt/frontage/bin/pip install --no-cache-dir --constraint /source/.ci/constraints.txt /source

FROM docker.io/library/python:3.13-slim
RUN useradd --system --uid 1000 --home-dir /var/lib/frontage frontage \\
    && install --directory --owner=frontage --mode=0700 /var/lib/frontage
COPY --from=build /opt/frontage /opt/frontage
USER frontage
VOLUME /var/lib/frontage
ENV PATH=/opt/frontage/bin:$$PATH FRONTAGE_STATE_DIR=/var/lib/frontage \\
    FRONTAGE_EDGE_HTTP=0.0.0.0:8080 FRONTAGE_EDGE_HTTPS=0.0.0.0:8443 FRONTAGE_API_LISTEN=0.0.0.0:8000
EXPOSE $ports
STOPSIGNAL SIGTERM
ENTRYPOINT ["frontage"]
CMD ["--help"]
""")


def units(
    program: str, roles: tuple[Role, ...] = ROLES, *, workers: int = 1, api_listen: str = API_LISTEN
) -> dict[str, str]:
    """Return the text of each file by its path.

    `program` is the path of ``frontage``; `workers` of the edge each get a listener of their own; systemd listens on
    `api_listen` for the API.
    """
    files = {"/etc/sysusers.d/frontage.conf": _USER}
    for role in roles:
        files[f"{SYSTEMD}/frontage-{role}.service"] = _SERVICE.substitute(
            description=_DESCRIPTIONS[role],
            environment_file=ENVIRONMENT_FILE,
            program=program,
            role=role,
            special=_SPECIAL[role],
        )
    if Role.EDGE in roles:
        for name, port in (("http", 80), ("https", 443)):
            listeners = "\n".join([f"ListenStream={port}"] * workers)
            files[f"{SYSTEMD}/frontage-{name}.socket"] = _SOCKET.substitute(
                role=Role.EDGE, name=name, listen=f"port {port}", listeners=listeners
            )
    if Role.API in roles:
        files[f"{SYSTEMD}/frontage-api.socket"] = _SOCKET.substitute(
            role=Role.API, name="api", listen=api_listen, listeners=f"ListenStream={api_listen}"
        )
    return files


def environment() -> str:
    """Return the environment file to begin with; its values are examples."""
    return _ENVIRONMENT


def container() -> str:
    """Return a Containerfile to be built in a clone of the repository; the image has no part of the clone itself."""
    return _CONTAINER.substitute(ports="8080 8443 8000")
