"""What the tests of running services share."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from pytest_django import DjangoDbBlocker

from tests.servers.nginx import free_ports, start_balancer
from tests.servers.postgres import Postgres
from tests.servers.processes import stopping
from tests.servers.service import QUICK, Service, service_environment, start_service

if TYPE_CHECKING:
    from tests.live.cluster import Cluster


@pytest.fixture(scope="package", autouse=True)
def databases_of_services(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """This process may query the database of a service, without `pytest.mark.django_db`."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture(scope="package")
def cluster(
    postgres: Postgres,
    migrated_template: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator["Cluster"]:
    """Two login nodes and one for the staff, with quick deadlines; no test may stop them."""
    from tests.live.cluster import Cluster, behind

    folder, ports = tmp_path_factory.mktemp("cluster"), free_ports()
    url = postgres.create_database(migrated_template)
    balancer = start_balancer(ports)
    with stopping(balancer):
        nodes: list[Service] = []
        try:
            for port, serve in ((ports.staff, "staff"), *((p, "login") for p in ports.nodes)):
                settings = behind(ports) | {"DATABASE_URL": url, "SERVE": serve}
                environment = service_environment(folder, port, **settings)
                log = folder / f"node-{port}.log"
                nodes.append(start_service(environment, log, QUICK))
            yield Cluster(balancer, nodes[1:])
        finally:
            with stopping(*nodes):
                pass
    postgres.drop_database(url)
