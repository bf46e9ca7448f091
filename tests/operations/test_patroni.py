"""The files of `deploy/patroni/`: what the promises of the service need of them.

That they run, and what they survive: `make chaos ARGS=--patroni`.
"""

import re
from typing import Any

import yaml

from tests.servers.patroni.files import FOLDER, PATRONI
from tests.servers.processes import CHECKOUT

FILE = (FOLDER / "patroni.yml").read_text(encoding="utf-8")
MEMBER: dict[str, Any] = yaml.safe_load(FILE)
CLUSTER: dict[str, Any] = MEMBER["bootstrap"]["dcs"]
PARAMETERS: dict[str, Any] = CLUSTER["postgresql"]["parameters"]
PAGE = (CHECKOUT / "docs" / "high-availability.md").read_text(encoding="utf-8")


def test_no_commit_is_confirmed_before_a_standby_has_it() -> None:
    """Otherwise the loss of the leader would lose records of tokens."""
    assert CLUSTER["synchronous_mode"] is True
    assert CLUSTER["synchronous_mode_strict"] is True
    assert CLUSTER["synchronous_node_count"] == 1  # with two, the loss of either stops logins
    assert PARAMETERS["synchronous_commit"] == "on"


def test_the_times_are_those_that_patroni_can_keep() -> None:
    assert CLUSTER["ttl"] >= 20
    assert CLUSTER["loop_wait"] + 2 * CLUSTER["retry_timeout"] <= CLUSTER["ttl"]


def test_a_former_leader_can_be_rewound() -> None:
    assert CLUSTER["postgresql"]["use_pg_rewind"] is True
    assert PARAMETERS["wal_log_hints"] == "on"
    assert "data-checksums" in MEMBER["bootstrap"]["initdb"]


def test_nobody_but_the_superuser_of_the_machine_comes_in_without_a_password_and_tls() -> None:
    local, *others = CLUSTER["postgresql"]["pg_hba"]
    assert local == "local all postgres peer"
    assert all(re.fullmatch(r"hostssl \S+ \S+ 10\.\S+ scram-sha-256", line) for line in others)
    assert PARAMETERS["ssl"] == "on"


def test_every_line_that_differs_between_the_machines_is_marked() -> None:
    own = [line for line in FILE.splitlines() if re.search(r"db-1|10\.0\.0\.21:(?!2379)", line)]
    assert own
    assert [line for line in own if not line.endswith("# this machine")] == []


def test_haproxy_asks_each_member_whether_it_leads_and_closes_what_led_before() -> None:
    text = (FOLDER / "haproxy.cfg").read_text(encoding="utf-8")
    assert "option httpchk OPTIONS /primary\n" in text
    assert "on-marked-down shutdown-sessions\n" in text
    hosts = re.findall(r"server (db-\d) (10\.0\.0\.2\d):5432 check port 8008\n", text)
    etcd = MEMBER["etcd3"]["hosts"]
    assert [f"{host}:2379" for _name, host in hosts] == etcd
    initial = re.findall(r"(db-\d)=http://([\d.]+):2380", (FOLDER / "etcd.env").read_text())
    assert initial == hosts


def test_the_page_installs_what_the_unit_starts() -> None:
    unit = (FOLDER / "patroni.service").read_text(encoding="utf-8")
    assert f"ExecStart={PATRONI}/patroni /etc/patroni/config.yml\n" in unit
    assert f"{PATRONI}/pip install 'patroni[etcd3]==" in PAGE
