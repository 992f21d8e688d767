"""The files that run the roles in containers on several machines: Kubernetes' manifests, a compose file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from api.cli.service.workloads import (
    EXAMPLE_DATABASE,
    EXAMPLE_SETTINGS,
    ROLES,
    STATE_DIR,
    USER_ID,
    WORKLOADS,
    Role,
)

Document = dict[str, Any]

_KEY_FILE: Final = "/run/secrets/frontage/master.key"
_DRAIN_SECONDS: Final = 10
"""For which an edge that is to stop is not ready, and still accepts: balancers and DNS learn of it."""
_BALANCER_SECONDS: Final = 5
_REPLICAS: Final = {Role.EDGE: 3, Role.API: 2, Role.MONITOR: 2}
_KUBERNETES_NOTE: Final = """\
# kubectl create secret generic frontage-keys --from-file=master.key     (frontage master-key export, or a new file)
# kubectl apply -f FILE     after these example values are yours: the Secret, the ConfigMap
# An upgrade: delete the Job frontage-migrate, and apply the file with the new image.
"""
_COMPOSE_NOTE: Final = """\
# podman build -t {image} .     with the file that `frontage service print --container` prints
# frontage.env: one FRONTAGE_NAME=value a line, without quotes: FRONTAGE_DATABASE_URL and the others of Settings
# master.key: a key file that the user 1000 may read
"""


def kubernetes(image: str, *, is_balanced: bool = False) -> list[Document]:
    """Return the manifests of all roles.

    Edges run on each node at its ports 80 and 443, or, if `is_balanced`, as a deployment behind a balancer that sends
    PROXY headers.
    """
    settings = dict(EXAMPLE_SETTINGS)
    if is_balanced:
        settings["FRONTAGE_EDGE_TRUSTED_PROXIES"] = "10.0.0.0/8"
    documents = [
        {**_head("v1", "Secret", "frontage-database"), "stringData": {"FRONTAGE_DATABASE_URL": EXAMPLE_DATABASE}},
        {**_head("v1", "ConfigMap", "frontage-settings"), "data": settings},
        _migration(image),
    ]
    for role in ROLES:
        documents += _workload(role, image, on_each_node=role is Role.EDGE and not is_balanced)
    return [*documents, _service(Role.API), *([_service(Role.EDGE)] if is_balanced else []), _network_policy()]


def compose(image: str) -> Document:
    """Return a compose file of all roles, for one machine."""
    services = {
        "migrate": _compose_base(image) | {"command": ["migrate"], "restart": "on-failure"},
        **{role.value: _compose_service(role, image) for role in ROLES},
    }
    return {
        "name": "frontage",
        "services": services,
        "volumes": {f"{role}-state": {} for role in ROLES},
        "secrets": {"master_key": {"file": "./master.key"}},
    }


def render_kubernetes(image: str, *, is_balanced: bool = False) -> str:
    """Return the manifests as YAML."""
    documents = (_to_yaml(document) for document in kubernetes(image, is_balanced=is_balanced))
    return _KUBERNETES_NOTE + "".join(f"---\n{document}" for document in documents)


def render_compose(image: str) -> str:
    """Return the compose file as YAML."""
    return _COMPOSE_NOTE.format(image=image) + _to_yaml(compose(image))


# Kubernetes ----------------------------------------------------------------------------------------------------------


def _head(version: str, kind: str, name: str, role: Role | None = None) -> Document:
    labels = {"app.kubernetes.io/name": "frontage"} | ({"app.kubernetes.io/component": role.value} if role else {})
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": labels}}


def _labels(role: Role) -> dict[str, str]:
    return {"app.kubernetes.io/name": "frontage", "app.kubernetes.io/component": role.value}


def _migration(image: str) -> Document:
    pod = _pod(image, ["migrate"]) | {"restartPolicy": "OnFailure"}
    return {
        **_head("batch/v1", "Job", "frontage-migrate"),
        "spec": {"backoffLimit": 10, "template": {"spec": pod}},
    }


def _workload(role: Role, image: str, *, on_each_node: bool) -> Iterator[Document]:
    kind = "DaemonSet" if on_each_node else "Deployment"
    pod = {"metadata": {"labels": _labels(role)}, "spec": _role_pod(role, image, on_each_node=on_each_node)}
    rolling = {"maxUnavailable": 1} if on_each_node else {"maxUnavailable": 0, "maxSurge": 1}
    spec: Document = {"selector": {"matchLabels": _labels(role)}, "template": pod}
    if on_each_node:
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    else:
        spec |= {"replicas": _REPLICAS[role], "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}
    yield {**_head("apps/v1", kind, f"frontage-{role}", role), "spec": spec}
    if not on_each_node:
        yield {
            **_head("policy/v1", "PodDisruptionBudget", f"frontage-{role}", role),
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": _labels(role)}},
        }


def _role_pod(role: Role, image: str, *, on_each_node: bool) -> Document:
    workload = WORKLOADS[role]
    pod = _pod(image, [role.value], workload.environment(role))
    [container] = pod["containers"]
    container["name"] = role.value
    container["ports"] = [
        {"name": name, "containerPort": port} | ({"hostPort": {"http": 80, "https": 443}[name]} if on_each_node else {})
        for name, port in workload.ports.items()
    ] + [{"name": "admin", "containerPort": workload.admin_port}]
    container["startupProbe"] = _probe("/healthz", period=2, failures=60)
    container["livenessProbe"] = _probe("/healthz", period=10, failures=6)
    container["readinessProbe"] = _probe("/readyz", period=2, failures=2)
    container["resources"] = {
        "requests": {"cpu": "250m", "memory": "256Mi"},
        "limits": {"memory": workload.memory},
    }
    stop_seconds = workload.stop_seconds
    if role is Role.EDGE:
        container["env"].append({"name": "FRONTAGE_EDGE_SHUTDOWN_DELAY_SECONDS", "value": str(_DRAIN_SECONDS)})
        stop_seconds += _DRAIN_SECONDS
    elif role is Role.API:  # the balancers of the Service go on for a moment
        container["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", str(_BALANCER_SECONDS)]}}}
        stop_seconds += _BALANCER_SECONDS
    pod["terminationGracePeriodSeconds"] = stop_seconds
    if not on_each_node:
        term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": _labels(role)}}
        pod["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]
            }
        }
    return pod


def _pod(image: str, arguments: list[str], environment: dict[str, str] | None = None) -> Document:
    """Return a pod of one container that is not root, and writes nowhere but to its state and /tmp."""
    variables = {"FRONTAGE_STATE_DIR": STATE_DIR, "FRONTAGE_MASTER_KEY_FILE": _KEY_FILE, **(environment or {})}
    container: Document = {
        "name": "frontage",
        "image": image,
        "args": arguments,
        "envFrom": [
            {"configMapRef": {"name": "frontage-settings"}},
            {"secretRef": {"name": "frontage-database"}},
        ],
        "env": [{"name": name, "value": value} for name, value in variables.items()],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "state", "mountPath": STATE_DIR},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - in the container
            {"name": "keys", "mountPath": _KEY_FILE.rpartition("/")[0], "readOnly": True},
        ],
    }
    return {
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "state", "emptyDir": {}},  # an edge copies its routes afresh; nothing else is kept there
            {"name": "tmp", "emptyDir": {}},
            {"name": "keys", "secret": {"secretName": "frontage-keys", "defaultMode": 0o440}},
        ],
    }


def _probe(path: str, *, period: int, failures: int) -> Document:
    return {
        "httpGet": {"path": path, "port": "admin"},
        "periodSeconds": period,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }


def _service(role: Role) -> Document:
    ports = WORKLOADS[role].ports
    outside = {"http": 80, "https": 443}
    spec: Document = {
        "selector": _labels(role),
        "ports": [{"name": name, "port": outside.get(name, port), "targetPort": name} for name, port in ports.items()],
    }
    if role is Role.EDGE:
        spec |= {"type": "LoadBalancer", "externalTrafficPolicy": "Local"}
    return {**_head("v1", "Service", f"frontage-{role}", role), "spec": spec}


def _network_policy() -> Document:
    """Return the policy that opens visitors' ports to all, and the admin ports to the namespace `monitoring` alone."""
    public = [{"port": port} for role in ROLES for port in WORKLOADS[role].ports.values()]
    admin = [{"port": WORKLOADS[role].admin_port} for role in ROLES]
    scraper = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    return {
        **_head("networking.k8s.io/v1", "NetworkPolicy", "frontage"),
        "spec": {
            "podSelector": {"matchLabels": {"app.kubernetes.io/name": "frontage"}},
            "policyTypes": ["Ingress"],
            "ingress": [{"ports": public}, {"from": [scraper], "ports": admin}],
        },
    }


# Compose -------------------------------------------------------------------------------------------------------------


def _compose_base(image: str) -> Document:
    return {
        "image": image,
        "env_file": ["./frontage.env"],
        "environment": {"FRONTAGE_STATE_DIR": STATE_DIR, "FRONTAGE_MASTER_KEY_FILE": "/run/secrets/master_key"},
        "secrets": ["master_key"],
        "read_only": True,
        "tmpfs": ["/tmp"],  # noqa: S108 - in the container
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
    }


def _compose_service(role: Role, image: str) -> Document:
    workload = WORKLOADS[role]
    base = _compose_base(image)
    published = {"http": "80", "https": "443", "api": "127.0.0.1:8000"}
    ready = (
        f"import urllib.request as request; request.urlopen('http://127.0.0.1:{workload.admin_port}/readyz', timeout=4)"
    )
    service = base | {
        "command": [role.value],
        "environment": base["environment"] | workload.environment(role),
        "depends_on": {"migrate": {"condition": "service_completed_successfully"}},
        "restart": "unless-stopped",
        "stop_grace_period": f"{workload.stop_seconds}s",
        "mem_limit": workload.memory.removesuffix("i").lower(),
        "volumes": [f"{role}-state:{STATE_DIR}"],
        "healthcheck": {
            "test": ["CMD", "python", "-c", ready],
            "interval": "10s",
            "timeout": "5s",
            "start_period": "60s",
        },
    }
    if workload.ports:
        service["ports"] = [f"{published[name]}:{port}" for name, port in workload.ports.items()]
    return service


# YAML ----------------------------------------------------------------------------------------------------------------


def _to_yaml(value: Document) -> str:
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    """Yield the lines of a mapping or a list that is not empty; scalars are JSON's, which YAML includes."""
    items = value.items() if isinstance(value, dict) else ((None, item) for item in value)
    for key, item in items:
        head = "-" if key is None else f"{key}:"
        if not item or not isinstance(item, dict | list):
            yield f"{head} {json.dumps(item, ensure_ascii=False)}"
        elif key is None:
            first, *others = _lines(item)
            yield f"- {first}"
            yield from (f"  {line}" for line in others)
        else:
            yield head
            yield from (f"  {line}" for line in _lines(item))
