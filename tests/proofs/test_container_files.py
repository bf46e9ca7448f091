"""The chart, `compose.yaml` and the Containerfile: right for Helm, Kubernetes and Docker Compose.

Nothing is installed in a cluster here. That nginx, PgBouncer and PostgreSQL work as they are
started there is in the other tests of this folder; that the image does, in `make container`.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import helm_python
import jsonschema_rs
import pytest
import yaml
from django.core.management import get_commands

from identity.configuration.setting_list import SETTINGS
from proofs.containers.composed import EXAMPLE, FOLDER, compose, rendered, service
from tests.operations.machine import commands_of
from tests.servers.processes import CHECKOUT, completed, ran

CHART = CHECKOUT / "deploy" / "helm" / "identity"
IMAGE = (FOLDER / "Containerfile").read_text(encoding="utf-8")
VISIBLE = re.findall(r"^!(.+)$", (CHECKOUT / ".dockerignore").read_text(), re.MULTILINE)
KUBERNETES = ("1.29", "1.37")  # the oldest that the chart allows, and the newest
# Only its data: with the package comes a validator in Python, whose import takes seconds.
SCHEMAS = Path(str(distribution("kubernetes-validate").locate_file("kubernetes_validate")))
ALERTS = CHECKOUT / "deploy" / "prometheus" / "alerts.yml"
EVERYTHING: dict[str, Any] = {
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "login": {"autoscaling": {"enabled": True}},
    "proxy": {"mtlsHost": "mtls.id.example.org", "publicService": {"annotations": {"a": "b"}}},
    "networkPolicy": {
        "alsoFrom": [{"namespaceSelector": {"matchLabels": {"team": "watch"}}}],
        "alsoTo": [{"ports": [{"port": 4318}]}],
    },
    "prometheusRule": {"alerts": ALERTS.read_text(), "without": ["TokenServiceBackupOld"]},
    "databaseAuthority": True,
    "image": {"digest": "sha256:" + "0" * 64},
    "imagePullSecrets": [{"name": "registry"}],
    "secretKeyFallbacks": True,
    "nodeSelector": {"disk": "ssd"},
    "podAnnotations": {"note": "text"},
    "tolerations": [{"key": "identity", "operator": "Exists"}],
}
LITTLE = {name: {"enabled": False} for name in ("proxy", "networkPolicy", "migration")}
NODES = {"login-1": "login", "login-2": "login", "staff": "staff"}
OURS = [*NODES, "migrate", "nightly", "counts", "webhooks", "manage"]
ALL = [*OURS, "nginx", "pooler", "primary", "standby"]


def objects(values: Mapping[str, Any] | None = None) -> list[Mapping[str, Any]]:
    with helm_python.Chart.load(CHART) as chart:
        files = chart.render(values=dict(values or {}), name="identity", namespace="tax")
    manifests = [text for name, text in files.items() if name.endswith(".yaml")]
    return [found for text in manifests for found in yaml.safe_load_all(text) if found]


@cache
def usual() -> dict[tuple[str, str], Mapping[str, Any]]:
    """Each object of the default values by its kind and name."""
    return {(found["kind"], found["metadata"]["name"]): found for found in objects()}


@cache
def pods() -> dict[str, Mapping[str, Any]]:
    """Of all values together, by the name of the object."""
    found = {}
    for one in objects(EVERYTHING):
        spec = one.get("spec", {})
        spec = spec.get("jobTemplate", {}).get("spec", spec)
        if "template" in spec:
            found[one["metadata"]["name"]] = spec["template"]["spec"]
    return found


# --- Right for the programs that read them --------------------------------------------------------


@cache
def kubernetes(version: str, kind: str, api: str) -> jsonschema_rs.Draft202012Validator:
    """What takes an object as that version of Kubernetes does, and no unknown field."""
    folder = SCHEMAS / "kubernetes-json-schema" / f"v{version}.0-local-strict"
    group = re.sub(r"^([^./]*)[^/]*/", r"\1-", api)  # rbac.authorization.k8s.io/v1: rbac-v1
    schema = json.loads((folder / f"{kind.lower()}-{group}.json").read_bytes())
    parts = json.loads((folder / "_definitions.json").read_bytes())
    known = jsonschema_rs.Registry([("https://kubernetes.io/api/_definitions.json", parts)])
    return jsonschema_rs.Draft202012Validator(schema, registry=known)


@pytest.mark.slow
@pytest.mark.parametrize("values", [{}, EVERYTHING, LITTLE], ids=["usual", "everything", "little"])
def test_helm_and_kubernetes_find_no_fault(values: dict[str, Any]) -> None:
    report = helm_python.lint(CHART, values, strict=True)
    assert [one for one in report["messages"] if one["severity"] > 1] == []
    assert report["errors"] == []
    found = objects(values)
    assert len(found) >= 9
    for one in found:
        if one["kind"] not in ("ServiceMonitor", "PrometheusRule"):  # not of Kubernetes itself
            for version in KUBERNETES:
                kubernetes(version, one["kind"], one["apiVersion"]).validate(one)


@pytest.mark.processes
def test_docker_compose_finds_no_fault_but_one_that_is_put_in(tmp_path: Path) -> None:
    assert set(rendered()["services"]) == set(ALL)
    (tmp_path / "env").write_text(EXAMPLE.read_text().replace("PUBLIC_HOST=", "PUBLIC_HOSE="))
    done = compose("config", "--quiet", environment=tmp_path / "env")
    assert done.returncode != 0
    assert "PUBLIC_HOST" in done.stderr


def test_kubernetes_and_the_schema_of_the_values_find_a_fault() -> None:
    deployment = dict(usual()["Deployment", "identity-login"])
    deployment["spec"] = {**deployment["spec"], "replica": 3}
    with pytest.raises(jsonschema_rs.ValidationError, match="replica"):
        kubernetes(KUBERNETES[-1], "Deployment", "apps/v1").validate(deployment)
    for values, says in (
        ({"settings": {"AUTH_UR": "https://id.example.org"}}, "AUTH_UR"),
        ({"settings": {"AUTH_URL": "http://id.example.org"}}, "AUTH_URL"),
        ({"login": {"replicas": 1}}, "replicas"),
        ({"proxi": {}}, "proxi"),
    ):
        with pytest.raises(helm_python.HelmError, match=says):
            objects(values)
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    open_ones = {name for name, setting in SETTINGS.items() if not setting.is_secret}
    by_chart = {"SERVE", "PORT", "BIND", "VAR_DIR", "STATIC_DIR"}
    known = schema["properties"]["settings"]["propertyNames"]["enum"]
    assert sorted(known) == sorted(open_ones - by_chart)


# --- What they promise ----------------------------------------------------------------------------


def test_every_container_of_the_chart_is_closed_to_its_machine() -> None:
    containers = 0
    for name, pod in pods().items():
        assert pod["automountServiceAccountToken"] is False, name
        assert pod["securityContext"]["runAsNonRoot"] is True, name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        mounts = {kind for volume in pod["volumes"] for kind in volume} - {"name"}
        assert mounts <= {"emptyDir", "secret", "configMap"}, name
        for container in (*pod["containers"], *pod.get("initContainers", ())):
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True, name
            assert context["capabilities"]["drop"] == ["ALL"], name
            assert context["allowPrivilegeEscalation"] is False, name
            assert "memory" in container["resources"]["limits"], name
            containers += 1
    assert containers == 10


@pytest.mark.processes
@pytest.mark.parametrize("name", ALL)
def test_every_container_of_compose_is_closed_to_its_machine(name: str) -> None:
    given = service(name)
    user = given.get("user") or re.findall(r"^USER (\S+)$", IMAGE, re.MULTILINE)[-1]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    assert given["read_only"] is True
    assert given["cap_drop"] == ["ALL"]
    assert not given.get("cap_add")
    assert not given.get("privileged")
    assert given["security_opt"] == ["no-new-privileges:true"]
    assert "memory" in given["deploy"]["resources"]["limits"]
    mounted = [one for one in given.get("volumes", ()) if one["type"] == "bind"]
    assert all(one["read_only"] for one in mounted)


@pytest.mark.processes
def test_every_setting_exists_and_secrets_are_in_files() -> None:
    environments = [service(name)["environment"] for name in OURS]
    for name, pod in pods().items():
        if not name.startswith("identity-proxy-"):
            environments.append({one["name"]: "" for one in pod["containers"][0]["env"]})
    for environment in environments:
        for name in environment:
            assert SETTINGS[name.removesuffix("_FILE")].is_secret == name.endswith("_FILE"), name


def component_of(peer: Mapping[str, Any]) -> str:
    return str(peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"])


def test_alerts_of_the_chart_are_those_of_prometheus_and_know_its_names() -> None:
    alerts = yaml.safe_load(ALERTS.read_text())
    found = {one["kind"]: one["spec"] for one in objects(EVERYTHING)}
    (group,) = found["PrometheusRule"]["groups"]
    left_out = EVERYTHING["prometheusRule"]["without"]
    wanted = [one for one in alerts["groups"][0]["rules"] if one["alert"] not in left_out]
    assert group["rules"] == wanted
    (endpoint,) = found["ServiceMonitor"]["endpoints"]
    assert endpoint["relabelings"] == [{"targetLabel": "job", "replacement": "identity"}]
    jobs = {name for kind, name in usual() if kind == "CronJob"}
    (nightly,) = (one["expr"] for one in wanted if "NightlyWork" in one["alert"])
    for pattern, names in (
        ("job_name", {f"{name}-29000000" for name in jobs}),
        ("cronjob", {"identity-nightly"}),
    ):
        (regular,) = re.findall(rf'\b{pattern}=~"([^"]+)"', nightly)
        assert all(re.fullmatch(regular, name) for name in names)


@pytest.mark.processes
def test_only_the_proxy_reaches_the_nodes_and_only_nodes_reach_the_database() -> None:
    """The public one reaches those of the staff too, for /confirm/."""
    callers = {"login": ["proxy-public"], "staff": ["proxy-staff", "proxy-public"]}
    for component, names_of_callers in callers.items():
        policy = usual()["NetworkPolicy", f"identity-{component}"]["spec"]
        (rule,) = policy["ingress"]
        *peers, prometheus = rule["from"]
        assert [component_of(peer) for peer in peers] == names_of_callers
        assert list(prometheus["namespaceSelector"]["matchLabels"].values()) == ["monitoring"]
        names, database = policy["egress"]
        assert {one["port"] for one in names["ports"]} == {53}
        assert (database["ports"], len(database["to"])) == ([{"port": 5432}], 1)
    for proxy, reached in (("public", ["login", "staff"]), ("staff", ["staff"])):
        _names, nodes = usual()["NetworkPolicy", f"identity-proxy-{proxy}"]["spec"]["egress"]
        assert [component_of(peer) for peer in nodes["to"]] == reached
    assert usual()["NetworkPolicy", "identity-job"]["spec"]["ingress"] == []
    assert [name for name in ALL if service(name).get("ports")] == ["nginx"]
    assert set(service("nginx")["networks"]) == {"front"}
    assert rendered()["networks"]["database"]["internal"] is True
    for name in ("pooler", "primary", "standby", *(set(OURS) - {*NODES, "webhooks"})):
        assert set(service(name)["networks"]) == {"database"}, name
    address = service("nginx")["networks"]["front"]["ipv4_address"]
    assert {service(name)["environment"]["TRUSTED_PROXIES"] for name in OURS} == {address}


@pytest.mark.processes
def test_nodes_serve_their_half_are_probed_and_get_time_to_stop() -> None:
    for name, serve in NODES.items():
        assert service(name)["environment"]["SERVE"] == serve
        assert service(name)["healthcheck"]["test"][-1] in IMAGE
        assert service(name)["stop_grace_period"] == "25s"
        (container,) = (pod := pods()[f"identity-{serve}"])["containers"]
        assert {"name": "SERVE", "value": serve} in container["env"]
        assert container["readinessProbe"]["httpGet"]["path"] == "/health/ready"
        _, seconds = container["lifecycle"]["preStop"]["exec"]["command"]
        assert pod["terminationGracePeriodSeconds"] >= int(seconds) + 25


@pytest.mark.processes
@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("nightly", "identity-nightly"),
        ("counts", "identity-count"),
        ("webhooks", "identity-webhooks"),
    ],
)
def test_the_jobs_are_those_of_systemd(name: str, unit: str) -> None:
    def commands(words: list[str]) -> list[str]:
        found = re.findall(r"manage\.py (\w+(?: --[\w-]+ \w+)*)", " ".join(words))
        assert {one.split()[0] for one in found} <= set(get_commands())
        return found

    wanted = commands(commands_of(f"{unit}.service"))
    assert wanted
    assert commands(service(name)["command"]) == wanted
    assert commands(pods()[f"identity-{name}"]["containers"][0]["command"]) == wanted


def test_each_proxy_of_the_chart_is_configured_by_the_image_and_serves_its_half() -> None:
    needed = set(re.findall(r'^: "\$\{(\w+):\?', (FOLDER / "proxy.sh").read_text(), re.MULTILINE))
    for half in ("public", "staff"):
        pod = pods()[f"identity-proxy-{half}"]
        (first,), (nginx,) = pod["initContainers"], pod["containers"]
        program, *files, place = first["command"]
        assert (program, place, set(files) <= set(VISIBLE)) == ("cp", "/etc/identity/", True)
        assert nginx["command"][-1] == f"{place}{Path(files[-1]).name}"
        given = {one["name"]: one["value"] for one in nginx["env"]}
        assert needed <= given.keys()
        assert given["ONLY"] == half
        for name in ("LOGIN_NODES", "STAFF_NODES"):
            found, *domain = given[name].removesuffix(":8000").split(".")
            assert domain == ["tax", "svc", "cluster", "local"]
            assert ("Service", found) in usual()


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    made = tmp_path / "secrets"
    subprocess.run([FOLDER / "make_secrets.sh", made], check=True)
    return made


@pytest.mark.processes
def test_every_secret_is_made_once_and_closed_to_other_users(secrets: Path) -> None:
    for name in ALL:
        for one in service(name).get("volumes", ()):
            assert one["type"] == "volume" or Path(one["source"]).is_file(), one
    before = {path.name: path.read_text() for path in secrets.iterdir()}
    named = {Path(one["file"]).name for one in rendered()["secrets"].values()}
    assert named - before.keys() == {"tls.crt", "tls.key"}  # the operator's own
    assert before.keys() <= named
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert len(set(before.values())) == len(before)
    (secrets / "pooler_users").unlink()
    subprocess.run([FOLDER / "make_secrets.sh", secrets], check=True)
    assert {path.name: path.read_text() for path in secrets.iterdir()} == before


@pytest.mark.processes
@pytest.mark.parametrize("name", ["login-1", "staff"])
def test_the_settings_of_a_node_pass_every_check(name: str, secrets: Path, tmp_path: Path) -> None:
    given = {
        setting: value.replace("/run/secrets", str(secrets))
        for setting, value in service(name)["environment"].items()
    }
    ran(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=CHECKOUT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var"), **given},
    )


PAGES = [
    *("/guide", "/api-teams", "/packages/", "/clientcheck.py", "/openapi.json"),
    *("/errors/secret_expired", "/ms/"),
]
OPEN_PAGES = f"""
from django.conf import settings
from django.test import Client
for path in {PAGES}:
    print(path, Client().get(path, headers={{"host": "127.0.0.1"}}).status_code)
"""


@pytest.mark.processes
def test_a_build_sees_all_that_the_service_reads_and_nothing_else(tmp_path: Path) -> None:
    seen = {name.split("/")[0] for name in VISIBLE}
    assert not {"tests", "proofs", "bench", ".venv", "var", ".git"} & seen
    for name in VISIBLE:
        source, place = CHECKOUT / name, tmp_path / "seen" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, ignore=shutil.ignore_patterns("__pycache__"))
        elif name != "packages/dist":  # a release builds it
            shutil.copy(source, place)
    done = completed(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", OPEN_PAGES],
        cwd=tmp_path / "seen",
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path / "var")},
    )
    assert done.stdout.splitlines() == [f"{path} 200" for path in PAGES], done.stderr
