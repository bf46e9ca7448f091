"""The chart `deploy/helm/identity/`: right for Helm and Kubernetes, true to this repository.

It was never installed in a cluster here: Helm's own library renders it, and the JSON schemas of
Kubernetes look at every object.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import helm_python
import kubernetes_validate
import pytest
import yaml
from django.core.management import get_commands

from identity.configuration.setting_list import SETTINGS
from tests.operations.units import commands_of
from tests.servers.nginx import CONFIGURATION
from tests.servers.processes import CHECKOUT

FOLDER = CHECKOUT / "deploy" / "helm" / "identity"
PROXY = CHECKOUT / "deploy" / "container" / "proxy.sh"
KUBERNETES = ("1.29", "1.37")  # the oldest that the chart allows, and the newest
Object = Mapping[str, Any]
EVERYTHING: dict[str, Any] = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "login": {"autoscaling": {"enabled": True}},
    "proxy": {"mtlsHost": "mtls.id.example.org", "service": {"annotations": {"a": "b"}}},
    "networkPolicy": {"alsoFrom": [{"namespaceSelector": {"matchLabels": {"team": "watch"}}}]},
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "secretKeyFallbacks": True,
    "nodeSelector": {"disk": "ssd"},
    "podAnnotations": {"note": "text"},
    "tolerations": [{"key": "identity", "operator": "Exists"}],
}
_OFF = {"enabled": False}
LITTLE: dict[str, Any] = {
    "proxy": _OFF,
    "networkPolicy": _OFF,
    "migration": _OFF,
}


def objects(values: Mapping[str, Any] | None = None) -> list[Object]:
    with helm_python.Chart.load(FOLDER) as chart:
        files = chart.render(values=dict(values or {}), name="identity", namespace="tax")
    manifests = [text for name, text in files.items() if name.endswith(".yaml")]
    return [found for text in manifests for found in yaml.safe_load_all(text) if found]


@cache
def usual() -> dict[tuple[str, str], Object]:
    """Each object of the default values by its kind and name."""
    return {(found["kind"], found["metadata"]["name"]): found for found in objects()}


def pods(found: list[Object]) -> Iterator[tuple[str, Object]]:
    for one in found:
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            yield one["metadata"]["name"], spec["template"]["spec"]


def commands(pod: Object) -> list[str]:
    """What is run of manage.py, with its arguments."""
    text = " ".join(pod["containers"][0]["command"])
    return re.findall(r"manage\.py (.+?)(?: &&|$)", text)


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, EVERYTHING, LITTLE], ids=["usual", "everything", "little"])
def test_helm_and_kubernetes_find_no_fault(values: dict[str, Any]) -> None:
    report = helm_python.lint(FOLDER, values, strict=True)
    assert [one for one in report["messages"] if one["severity"] > 1] == []
    assert report["errors"] == []
    found = objects(values)
    assert len(found) >= 9
    for one in found:
        if one["kind"] != "ServiceMonitor":  # not of Kubernetes itself
            for version in KUBERNETES:
                kubernetes_validate.validate(one, version, strict=True)


def test_the_chart_says_which_kubernetes_it_needs() -> None:
    needed = yaml.safe_load((FOLDER / "Chart.yaml").read_text())["kubeVersion"]
    assert needed == f">={KUBERNETES[0]}.0-0"


def test_kubernetes_finds_a_fault() -> None:
    deployment = dict(usual()["Deployment", "identity-login"])
    deployment["spec"] = {**deployment["spec"], "replica": 3}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(deployment, KUBERNETES[-1], strict=True)


def test_the_chart_makes_what_it_promises() -> None:
    assert {kind for kind, _ in usual()} == {
        *("ConfigMap", "CronJob", "Deployment", "Job", "NetworkPolicy", "PodDisruptionBudget"),
        "Service",
    }
    more = {found["kind"] for found in objects(EVERYTHING)}
    assert {"ServiceMonitor", "HorizontalPodAutoscaler"} <= more
    assert {found["kind"] for found in objects(LITTLE)} == {
        *("CronJob", "Deployment", "PodDisruptionBudget", "Service"),
    }


def test_every_pod_is_closed_to_its_machine_and_to_the_cluster() -> None:
    found = list(pods(objects(EVERYTHING)))
    assert len(found) == 7
    for name, pod in found:
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
        for volume in pod["volumes"]:
            assert set(volume) - {"name"} <= {"emptyDir", "secret", "configMap"}


def test_every_setting_of_a_pod_exists_and_no_secret_is_in_its_environment() -> None:
    for name, pod in pods(objects(EVERYTHING)):
        if name == "identity-proxy":
            continue
        (container,) = pod["containers"]
        (files,) = (volume["secret"]["items"] for volume in pod["volumes"] if "secret" in volume)
        assert {
            one["value"].rpartition("/")[2] for one in container["env"] if "_FILE" in one["name"]
        } == {one["path"] for one in files}
        for one in container["env"]:
            setting = one["name"].removesuffix("_FILE")
            assert setting in SETTINGS, one
            assert SETTINGS[setting].is_secret == one["name"].endswith("_FILE")


def test_a_value_that_is_no_setting_or_cannot_be_is_refused() -> None:
    schema = yaml.safe_load((FOLDER / "values.schema.json").read_text())
    by_chart = {"SERVE", "PORT", "BIND", "VAR_DIR", "STATIC_DIR"}
    open_ones = {name for name, setting in SETTINGS.items() if not setting.is_secret}
    known = schema["properties"]["settings"]["propertyNames"]["enum"]
    assert sorted(known) == sorted(open_ones - by_chart)
    for values, says in (
        ({"settings": {"AUTH_UR": "https://id.example.org"}}, "AUTH_UR"),
        ({"settings": {"AUTH_URL": "http://id.example.org"}}, "AUTH_URL"),
        ({"login": {"replicas": 1}}, "replicas"),
        ({"proxi": {}}, "proxi"),
        ({"proxy": {"staffNetworks": []}}, "staffNetworks"),
    ):
        with pytest.raises(helm_python.HelmError, match=says):
            objects(values)


def test_the_proxy_has_the_files_of_this_repository_and_finds_the_nodes() -> None:
    data = usual()["ConfigMap", "identity-proxy"]["data"]
    assert data == {"nginx.conf": CONFIGURATION.read_text(), "proxy.sh": PROXY.read_text()}
    (container,) = dict(pods(list(usual().values())))["identity-proxy"]["containers"]
    given = {one["name"]: one["value"] for one in container["env"]}
    needed = set(re.findall(r'^: "\$\{(\w+):\?', PROXY.read_text(), re.MULTILINE))
    assert needed == set(given)
    for name in ("LOGIN_NODES", "STAFF_NODES"):
        service, *domain = given[name].removesuffix(":8000").split(".")
        assert domain == ["tax", "svc", "cluster", "local"]
        assert ("Service", service) in usual()


def test_every_address_leads_to_the_pods_of_its_component() -> None:
    labels = [
        found["spec"]["template"]["metadata"]["labels"]
        for (kind, _), found in usual().items()
        if kind == "Deployment"
    ]
    selectors = [
        found["spec"].get("selector") or found["spec"]["podSelector"]
        for (kind, name), found in usual().items()
        if kind in {"Service", "PodDisruptionBudget", "NetworkPolicy"} and not name.endswith("-job")
    ]
    assert len(selectors) >= 9
    for selector in selectors:
        wanted = selector.get("matchLabels", selector)
        assert sum(wanted.items() <= each.items() for each in labels) == 1, selector


def test_only_the_proxy_reaches_the_nodes() -> None:
    for component in ("login", "staff"):
        policy = usual()["NetworkPolicy", f"identity-{component}"]["spec"]
        (rule,) = policy["ingress"]
        (peer,) = rule["from"]
        assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "proxy"
        assert rule["ports"] == [{"port": "http"}]


def test_migrations_run_before_the_nodes_and_need_nothing_that_is_made_later() -> None:
    job = usual()["Job", "identity-migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    ((_, pod),) = pods([job])
    assert pod["containers"][0]["command"] == ["python", "manage.py", "migrate"]
    assert "serviceAccountName" not in pod
    made = {name for kind, name in usual() if kind in {"ConfigMap", "Secret"}}
    assert not made & {str(volume.get("secret", {}).get("secretName")) for volume in pod["volumes"]}


def test_the_jobs_are_those_of_systemd() -> None:
    for name, unit in (("nightly", "identity-nightly"), ("counts", "identity-count")):
        job = usual()["CronJob", f"identity-{name}"]
        assert job["spec"]["timeZone"] == SETTINGS["TIME_ZONE"].default
        ((_, pod),) = pods([job])
        assert commands(pod) == arguments_of(unit)
    webhooks = dict(pods(list(usual().values())))["identity-webhooks"]
    assert commands(webhooks) == arguments_of("identity-webhooks")


def arguments_of(unit: str) -> list[str]:
    """What the unit of systemd runs of manage.py."""
    found = [command.partition("manage.py ")[2] for command in commands_of(f"{unit}.service")]
    assert {command.split()[0] for command in found} <= set(get_commands())
    return found


def test_a_node_has_the_time_that_it_needs_to_stop() -> None:
    for name in ("identity-login", "identity-staff"):
        pod = dict(pods(list(usual().values())))[name]
        (container,) = pod["containers"]
        (command, seconds) = container["lifecycle"]["preStop"]["exec"]["command"]
        assert command == "sleep"
        assert pod["terminationGracePeriodSeconds"] >= int(seconds) + 25
