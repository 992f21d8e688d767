"""What each role needs of what runs it, be it systemd, a container or Kubernetes: one description for all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Role(StrEnum):
    """A role that a unit starts."""

    EDGE = "edge"
    API = "api"
    MONITOR = "monitor"


ROLES: Final = tuple(Role)


@dataclass(frozen=True, slots=True)
class Workload:
    """One role. `ports` are those of a container, by name; `admin_port` answers probes and Prometheus.

    `stop_seconds`: from SIGTERM on, what it has begun is done by then.
    """

    description: str
    ports: Mapping[str, int]
    admin_port: int
    stop_seconds: int
    memory: str
    """A limit that leaves room: Kubernetes' notation."""

    def environment(self, role: Role) -> dict[str, str]:
        """Return the settings by which it listens on a container's own address."""
        listeners = {f"FRONTAGE_{role.upper()}_ADMIN": f"0.0.0.0:{self.admin_port}"}
        for name, port in self.ports.items():
            variable = "FRONTAGE_API_LISTEN" if role is Role.API else f"FRONTAGE_EDGE_{name.upper()}"
            listeners[variable] = f"0.0.0.0:{port}"
        return listeners


WORKLOADS: Final[Mapping[Role, Workload]] = MappingProxyType(
    {
        Role.EDGE: Workload(
            "Frontage edge: proxy for customers' domains", {"http": 8080, "https": 8443}, 9180, 30, "2Gi"
        ),
        Role.API: Workload("Frontage API and dashboard", {"api": 8000}, 9181, 30, "1Gi"),
        Role.MONITOR: Workload("Frontage monitor: certificates, checks, deliveries", {}, 9182, 30, "1Gi"),
    }
)

EXAMPLE_SETTINGS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "FRONTAGE_POWER_TARGET": "power.example.com",
        "FRONTAGE_SSL_TARGET": "secure.example.com",
        "FRONTAGE_SERVICE_SERVERS": "192.0.2.1",
        "FRONTAGE_PUBLIC_URL": "https://api.example.com",
    }
)
EXAMPLE_DATABASE: Final = "postgresql://frontage:password@db.example/frontage?sslmode=require&connect_timeout=5"
STATE_DIR: Final = "/var/lib/frontage"
USER_ID: Final = 1000
