"""The image of `deploy/container/Containerfile`, built and run as in a production."""

import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from proofs.containers.runtime import Builder, Container, Image
from tests.servers.postgres import Postgres
from tests.servers.processes import CHECKOUT, Process, free_port
from tests.servers.service import TEST_SECRETS, is_ready
from tests.support.erp import Erp
from tests.support.over_http import SIGN_IN

HTTPS = {"X-Forwarded-Proto": "https", "Host": "id.example.org"}
STAFF = {"X-Forwarded-Proto": "https", "Host": "staff.id.example.org"}


@pytest.fixture(scope="session")
def builder() -> Iterator[Builder]:
    folder = CHECKOUT / "var" / "container"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    made = Builder(folder)
    yield made
    made.clean()


@pytest.fixture(scope="session")
def image(builder: Builder) -> Image:
    return builder.build("service")


@dataclass
class Deployment:
    image: Image
    folder: Path
    database_url: str
    count: int = 0

    def container(self, serve: str, port: int) -> Container:
        """With an empty volume of root that is open to every user, as Kubernetes has it."""
        self.count += 1
        volume = self.folder / f"volume-{self.count}"
        volume.mkdir()
        volume.chmod(0o777)
        secrets = {"DATABASE_URL": self.database_url, **TEST_SECRETS}
        volumes = {"/var/lib/identity": volume}
        for name, value in secrets.items():
            file = self.folder / name
            file.write_text(value)
            volumes[f"/run/secrets/{name}"] = file
        settings = {
            "SERVE": serve,
            "PORT": str(port),
            "BIND": "127.0.0.1",
            "ENVIRONMENT": "live",
            "AUTH_URL": "https://id.example.org",
            "STAFF_URL": "https://staff.id.example.org",
            "ALLOWED_HOSTS": "id.example.org,staff.id.example.org",
            "TRUSTED_PROXIES": "127.0.0.1",
            **{f"{name}_FILE": f"/run/secrets/{name}" for name in secrets},
        }
        return Container(self.image, self.folder / f"container-{self.count}", settings, volumes)

    def manage(self, *arguments: str) -> str:
        done = self.container("staff", 8000).run("python", "manage.py", *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(self, serve: str) -> Iterator[tuple[str, Container, Process]]:
        """Its address as soon as it is ready, and what runs there until the end of the block."""
        port = free_port()
        url, container = f"http://127.0.0.1:{port}", self.container(serve, port)
        log = self.folder / f"container-{self.count}.log"
        process = container.start(log, lambda: is_ready(url))
        try:
            yield url, container, process
        finally:
            container.end(process)
            sys.stdout.write(log.read_text())  # pytest shows it after a failure


@pytest.fixture(scope="session")
def deployment(
    image: Image, postgres: Postgres, tmp_path_factory: pytest.TempPathFactory
) -> Deployment:
    made = Deployment(image, tmp_path_factory.mktemp("containers"), postgres.create_database())
    for serve in ("login", "staff"):
        check = ("check", "--deploy", "--fail-level", "WARNING")
        done = made.container(serve, 8000).run("python", "manage.py", *check)
        assert done.returncode == 0, done.stdout + done.stderr
    made.manage("migrate", "--verbosity", "0")
    return made


def files_of(root: Path) -> set[tuple[str, float]]:
    """Every file of the image with the time of its last change."""
    paths = (path for path in root.rglob("*") if not path.is_symlink())
    return {(str(path), path.stat().st_mtime) for path in paths if path.is_file()}


@pytest.fixture
def login_node(deployment: Deployment) -> Iterator[tuple[str, Container]]:
    with deployment.running("login") as (url, container, _):
        yield url, container
    assert not is_ready(url)  # nothing is left behind


def test_a_client_gets_a_token_from_a_node_that_can_write_to_its_volume_alone(
    deployment: Deployment, login_node: tuple[str, Container]
) -> None:
    url, container = login_node
    before = files_of(deployment.image.root)
    deployment.manage("register_taxpayer", "C1000000001", "--name", "Sample")
    issued = json.loads(
        deployment.manage("issue_credentials", "C1000000001", "--name", "A", "--json")
    )
    erp = Erp(issued["client_id"], issued["client_secret"])
    answer = httpx.post(f"{url}/connect/token", data=erp.form, headers=HTTPS)
    assert answer.status_code == 200, answer.text
    assert answer.json()["token_type"] == "Bearer"
    for path in ("/guide", "/clientcheck.py", "/openapi.json", "/errors/invalid_credentials"):
        assert httpx.get(f"{url}{path}", headers=HTTPS).status_code == 200, path
    assert files_of(deployment.image.root) == before
    volume = container.volumes["/var/lib/identity"]
    assert [path.name for path in volume.iterdir()] == ["var"]
    assert (volume / "var").stat().st_uid == deployment.image.user[0]


def test_nothing_but_the_volume_and_tmp_can_be_written(deployment: Deployment) -> None:
    places = "/ /etc /opt/identity /var /run /home /usr"
    try_all = f"for place in {places}; do touch $place/x && echo $place; done"
    done = deployment.container("login", 8000).run("sh", "-c", f"{try_all}; touch /tmp/x && id -u")
    assert done.stdout.split() == ["10001"], done.stderr


def test_it_has_no_capability_and_cannot_get_one(deployment: Deployment) -> None:
    done = deployment.container("login", 8000).run("cat", "/proc/self/status")
    lines = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    assert {int(value, 16) for name, value in lines.items() if name.startswith("Cap")} == {0}
    assert lines["NoNewPrivs"] == "1"


def test_its_health_is_that_of_the_node(
    deployment: Deployment, login_node: tuple[str, Container]
) -> None:
    url, _ = login_node
    how = deployment.image.config["Healthcheck"]["Test"][1:]
    running = deployment.container("login", int(url.rpartition(":")[2])).run(*how)
    assert (running.returncode, running.stderr) == (0, "")
    other = deployment.container("login", free_port()).run(*how)
    assert other.returncode == 1
    assert "No answer on port" in other.stderr


def test_a_stop_answers_what_was_accepted_and_ends_in_time(deployment: Deployment) -> None:
    with (
        deployment.running("login") as (url, container, process),
        httpx.Client(base_url=url, headers=HTTPS) as client,
    ):
        assert client.get("/health/live").status_code == 200  # an open connection
        began = time.monotonic()
        container.stop(process)
        assert time.monotonic() - began < 20
        assert process.returncode == 0


def test_the_staff_pages_come_with_their_static_files(deployment: Deployment) -> None:
    with deployment.running("staff") as (url, _, _):
        page = httpx.get(f"{url}{SIGN_IN}", headers=STAFF)
        assert page.status_code == 200, page.text
        style = httpx.get(f"{url}/static/staff/staff.css", headers=STAFF)
        assert style.status_code == 200
        assert style.headers["Content-Type"].startswith("text/css")


def test_the_image_of_the_pooler_runs_as_a_number(builder: Builder, tmp_path: Path) -> None:
    image = builder.build("pgbouncer")
    done = Container(image, tmp_path / "pooler", {}, {}).run("pgbouncer", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("PgBouncer 1.")
    assert image.user == (10002, 10002)


def test_the_image_has_no_tool_to_install_with_and_no_test(deployment: Deployment) -> None:
    root = deployment.image.root / "opt" / "identity"
    names = {path.name for path in (root / ".venv" / "bin").iterdir()}
    assert "gunicorn" in names
    assert not {"pip", "pytest", "uv"} & names
    assert not [name for name in ("tests", "proofs") if (root / name).exists()]
    assert not [path for path in root.rglob("*") if not path.is_symlink() and _is_closed(path)]


def _is_closed(path: Path) -> bool:
    """Whether a user of any number could not read it, or could change it."""
    mode = path.stat().st_mode
    return not mode & 0o004 or bool(mode & 0o022) or not os.access(path, os.R_OK)
