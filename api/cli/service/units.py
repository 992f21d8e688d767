"""The files that run the roles on a server: systemd units, a system user, an environment, a container."""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Final

from api.cli.service.workloads import EXAMPLE_DATABASE, EXAMPLE_SETTINGS, ROLES, USER_ID, WORKLOADS, Role

SYSTEMD: Final = "/etc/systemd/system"
ENVIRONMENT_FILE: Final = "/etc/frontage/frontage.env"
API_LISTEN: Final = "127.0.0.1:8000"

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
${special}TimeoutStopSec=$stop_seconds
Restart=always
RestartSec=1
# A role whose loop stands still for so long is ended, and started again.
WatchdogSec=30
NotifyAccess=main
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
    Role.EDGE: """\
ExecReload=/bin/kill -USR2 $MAINPID
Sockets=frontage-http.socket frontage-https.socket%s
""",
    Role.API: """\
Sockets=frontage-api.socket
""",
    Role.MONITOR: "",
}
_SOCKET = Template("""\
[Unit]
Description=Frontage $role: $listen

[Socket]
$listeners
Backlog=4096
FileDescriptorName=$name
Service=frontage-$role.service

[Install]
WantedBy=sockets.target
""")
_SHARED = "ReusePort=yes"
_ENVIRONMENT = """\
# What every role of this installation needs; all variables: the handbook, Settings. Readable by root alone.
# Keep the single quotes: systemd and a shell read them alike, whatever characters a password or an address has.
"""
_EXAMPLES: Final[Mapping[str, str]] = {
    "FRONTAGE_DATABASE_URL": EXAMPLE_DATABASE,
    "FRONTAGE_EDGE_HTTP": "0.0.0.0:80",
    "FRONTAGE_EDGE_HTTPS": "0.0.0.0:443",
    **EXAMPLE_SETTINGS,
}
_USER = 'u frontage - "Frontage" /var/lib/frontage\n'
_CONTAINER = Template("""\
# podman build --format docker -t frontage .     (the format keeps the health check)
# safe="$safe"
# podman run --rm --env-file frontage.env $$safe -v frontage-api:/var/lib/frontage frontage migrate
# podman run -d --name edge --env-file frontage.env $$safe -v frontage-edge:/var/lib/frontage \\
#     -p 80:8080 -p 443:8443 -p 127.0.0.1:9180:9180 --stop-timeout 30 frontage edge
# frontage.env has one FRONTAGE_NAME=value a line, without quotes: podman and docker would make them part of the value.
# A volume belongs to one container; an edge keeps its routes there. An upgrade is a new image: migrate, then stop and
# start one container after another. What it is made of (packages, versions, licences):
# podman run --rm --entrypoint cat frontage /opt/frontage/sbom.cdx.json
# More than one of each: `frontage service print --compose` and `--kubernetes`.
FROM docker.io/library/python:3.13-slim AS build
COPY . /source
RUN python -m venv /opt/frontage \\
    && /opt/frontage/bin/pip install --no-cache-dir --constraint /source/.ci/constraints.txt '/source[otlp]'
RUN python -m venv /opt/lister \\
    && /opt/lister/bin/pip install --no-cache-dir 'cyclonedx-bom==7.*' \\
    && /opt/lister/bin/cyclonedx-py environment --pyproject /source/pyproject.toml \\
        --output-file /opt/frontage/sbom.cdx.json /opt/frontage/bin/python

FROM docker.io/library/python:3.13-slim
RUN useradd --system --uid $user_id --home-dir /var/lib/frontage frontage \\
    && install --directory --owner=frontage --mode=0700 /var/lib/frontage
COPY --from=build /opt/frontage /opt/frontage
USER frontage
VOLUME /var/lib/frontage
ENV PATH=/opt/frontage/bin:$$PATH FRONTAGE_STATE_DIR=/var/lib/frontage \\
    $listeners
EXPOSE $ports
# The role that runs here answers on one of the admin ports.
HEALTHCHECK --interval=10s --timeout=10s --start-period=60s CMD ["python", "-c", "$check"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["frontage"]
CMD ["--help"]
""")


_HEALTH_CHECK: Final = (
    "import urllib.request as r; ok = 0\\n"
    "for port in {ports}:\\n"
    " try: ok |= r.urlopen(f'http://127.0.0.1:{{port}}/healthz', timeout=3).status == 200\\n"
    " except OSError: pass\\n"
    "raise SystemExit(not ok)"
)


def units(
    program: str,
    roles: tuple[Role, ...] = ROLES,
    *,
    workers: int = 1,
    api_listen: str = API_LISTEN,
    dns_listen: str | None = None,
) -> dict[str, str]:
    """Return the text of each file by its path.

    `program` is the path of ``frontage``; `workers` of the edge each get a listener of their own; systemd listens on
    `api_listen` for the API, and for the edge on `dns_listen` where it answers the delegated challenge zone.
    """
    special = {**_SPECIAL, Role.EDGE: _SPECIAL[Role.EDGE] % (" frontage-dns.socket" if dns_listen else "")}
    files = {"/etc/sysusers.d/frontage.conf": _USER}
    for role in roles:
        files[f"{SYSTEMD}/frontage-{role}.service"] = _SERVICE.substitute(
            description=WORKLOADS[role].description,
            environment_file=ENVIRONMENT_FILE,
            program=program,
            role=role,
            special=special[role],
            stop_seconds=WORKLOADS[role].stop_seconds,
        )
    if Role.EDGE in roles:
        for name, port in (("http", 80), ("https", 443)):
            listeners = "\n".join([*[f"ListenStream={port}"] * workers, _SHARED])
            files[f"{SYSTEMD}/frontage-{name}.socket"] = _SOCKET.substitute(
                role=Role.EDGE, name=name, listen=f"port {port}", listeners=listeners
            )
    if Role.EDGE in roles and dns_listen:
        files[f"{SYSTEMD}/frontage-dns.socket"] = _SOCKET.substitute(
            role=Role.EDGE,
            name="dns",
            listen=dns_listen,
            listeners=f"ListenDatagram={dns_listen}\nListenStream={dns_listen}",
        )
    if Role.API in roles:
        files[f"{SYSTEMD}/frontage-api.socket"] = _SOCKET.substitute(
            role=Role.API, name="api", listen=api_listen, listeners=f"ListenStream={api_listen}\n{_SHARED}"
        )
    return files


def environment() -> str:
    """Return the environment file to begin with; its values are examples."""
    return _ENVIRONMENT + "".join(f"{name}='{value}'\n" for name, value in _EXAMPLES.items())


def container() -> str:
    """Return a Containerfile to be built in a clone of the repository; the image has no part of the clone itself."""
    listeners = {name: value for role in ROLES for name, value in WORKLOADS[role].environment(role).items()}
    return _CONTAINER.substitute(
        safe="--read-only --tmpfs /tmp --cap-drop all --security-opt no-new-privileges",
        user_id=USER_ID,
        listeners=" \\\n    ".join(f"{name}={value}" for name, value in listeners.items()),
        ports=" ".join(str(port) for role in ROLES for port in WORKLOADS[role].ports.values()),
        check=_HEALTH_CHECK.format(ports=tuple(WORKLOADS[role].admin_port for role in ROLES)),
    )
