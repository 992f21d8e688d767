"""Kubernetes' manifests and the compose file: valid, one for each role, and nothing in them runs as root."""

from __future__ import annotations

from typing import Any

import pytest

from api.cli.service import manifests
from api.cli.service.units import units
from api.cli.service.workloads import ROLES, WORKLOADS, Role
from common.settings import load

yaml = pytest.importorskip("yaml", reason="needs PyYAML")
IMAGE = "registry.example/frontage:1.0.0"
both_kinds = pytest.mark.parametrize("is_balanced", [False, True])


def pods(documents: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Each workload's pod, by name."""
    return {
        each["metadata"]["name"]: each["spec"]["template"]["spec"]
        for each in documents
        if each["kind"] in ("Job", "Deployment", "DaemonSet")
    }


@both_kinds
def test_the_text_is_what_the_cluster_will_read(is_balanced: bool) -> None:
    text = manifests.render_kubernetes(IMAGE, is_balanced=is_balanced)
    assert list(yaml.safe_load_all(text)) == manifests.kubernetes(IMAGE, is_balanced=is_balanced)
    assert yaml.safe_load(manifests.render_compose(IMAGE)) == manifests.compose(IMAGE)


@both_kinds
@pytest.mark.parametrize("version", ["1.29", "1.33"])
def test_the_api_servers_schemas_find_nothing_wrong(version: str, is_balanced: bool) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="needs kubernetes-validate")
    for document in manifests.kubernetes(IMAGE, is_balanced=is_balanced):
        kubernetes_validate.validate(document, version, strict=True)


@both_kinds
def test_every_pod_is_unprivileged_and_has_settings_that_exist(is_balanced: bool) -> None:
    documents = manifests.kubernetes(IMAGE, is_balanced=is_balanced)
    [shared] = [each["data"] for each in documents if each["kind"] == "ConfigMap"]
    found = pods(documents)
    assert set(found) == {"frontage-migrate", *(f"frontage-{role}" for role in ROLES)}
    for pod in found.values():
        assert pod["securityContext"]["runAsNonRoot"]
        [container] = pod["containers"]
        assert container["image"] == IMAGE
        assert container["securityContext"]["readOnlyRootFilesystem"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {each["name"] for each in pod["volumes"]}
        load(shared | {each["name"]: each["value"] for each in container["env"]})


@both_kinds
@pytest.mark.parametrize("role", ROLES)
def test_each_role_is_probed_where_it_listens_and_has_time_to_stop(role: Role, is_balanced: bool) -> None:
    pod = pods(manifests.kubernetes(IMAGE, is_balanced=is_balanced))[f"frontage-{role}"]
    [container] = pod["containers"]
    settings = load({each["name"]: each["value"] for each in container["env"]})
    listeners = {str(listen) for listen in settings.listeners}
    for port in container["ports"]:
        assert f"0.0.0.0:{port['containerPort']}" in listeners
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe")} == {"admin"}
    assert container["ports"][-1] == {"name": "admin", "containerPort": WORKLOADS[role].admin_port}
    lasts = settings.edge_shutdown_delay_seconds + settings.edge_drain_timeout_seconds if role is Role.EDGE else 0
    assert pod["terminationGracePeriodSeconds"] > lasts
    assert (
        f"TimeoutStopSec={WORKLOADS[role].stop_seconds}\n"
        in units("/f")[f"/etc/systemd/system/frontage-{role}.service"]
    )


def test_edges_have_the_ports_of_each_node_or_stand_behind_a_balancer() -> None:
    on_nodes, balanced = (manifests.kubernetes(IMAGE, is_balanced=each) for each in (False, True))
    kinds = [
        {each["kind"]: each for each in of if each["metadata"]["name"] == "frontage-edge"}
        for of in (on_nodes, balanced)
    ]
    assert set(kinds[0]) == {"DaemonSet"}
    assert set(kinds[1]) == {"Deployment", "PodDisruptionBudget", "Service"}
    [container] = pods(on_nodes)["frontage-edge"]["containers"]
    assert [port.get("hostPort") for port in container["ports"]] == [80, 443, None]
    [settings] = [each["data"] for each in balanced if each["kind"] == "ConfigMap"]
    assert load(settings).edge_trusted_proxies


def test_a_compose_files_roles_wait_for_the_migration_and_show_their_health() -> None:
    services = manifests.compose(IMAGE)["services"]
    for role in ROLES:
        service = services[role.value]
        assert service["read_only"]
        assert service["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
        assert f":{WORKLOADS[role].admin_port}/readyz" in service["healthcheck"]["test"][-1]
        load(service["environment"])
    assert services["edge"]["ports"] == ["80:8080", "443:8443"]
