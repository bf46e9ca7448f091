"""`staff-pages`: how fast the staff pages are with a country's registry and a month of logins."""

import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

import httpx
import psycopg

from bench.cases.staff_history import add_history
from bench.clients import Population, Role, client_id, tin
from bench.figures import percentile
from bench.login_events import add_login_events
from bench.peers import service
from bench.report import Table, progress
from bench.servers import Server, run_python
from bench.session import Session
from tokens.login_events.partitions import first_id

_LIMIT_MS = 300.0
_IN_PAGE = 6  # of the lines, the slowest
_DAYS, _REFUSED_PERCENT = 30, 5
_UUID7 = (7 << 76) | (1 << 63)  # version and variant
_WARM_UP_REQUESTS = 4  # open each process's connection to the database

_DATES = """
UPDATE credentials SET expires_at = now() + (1 + id % 365) * interval '1 day';
UPDATE credentials SET revoked_at = now(), slot = NULL WHERE id % 1000 = 0;
UPDATE system_users SET last_secret_ends_at = (SELECT max(expires_at) FROM credentials
    WHERE system_user_id = system_users.id AND revoked_at IS NULL);
UPDATE system_users SET expires_at = now() + (id % 1000 - 10) * interval '1 day' WHERE id % 10 = 0;
UPDATE granted_permissions SET valid_until = now() + (1 + id % 730) * interval '1 day'
    WHERE id % 5 = 0;
UPDATE intermediaries SET active_until = now() + (id % 365 - 10) * interval '1 day'
    WHERE id % 10 = 0;
-- Each permission was used before: the first uses of a month are no work of one night.
UPDATE granted_permissions SET first_used_at = created_at;
INSERT INTO login_counting_mark (id, next_id)
    SELECT 2, id FROM login_events ORDER BY id DESC LIMIT 1;
"""
_SAMPLE = "SELECT id FROM login_events TABLESAMPLE BERNOULLI (%s)"

_TAXPAYERS, _INTERMEDIARIES, _PERMISSIONS, _SYSTEM_USERS = (
    f"/admin/taxpayers/{model}/"
    for model in ("taxpayer", "intermediary", "grantedpermission", "systemuser")
)
_LOGINS = "/admin/tokens/loginevent/"
_ENDING = "/admin/ending-soon/"
_HISTORY = "/admin/taxpayers/change/"
_AS_OF = f"{_HISTORY}as_of/?day={datetime.now(UTC) - timedelta(days=10):%Y-%m-%d}&about="
# Every page whose cost could grow with the registry or the logins; what differs is in braces.
PAGES = {
    "first page": "/admin/",
    "taxpayers": _TAXPAYERS,
    "taxpayers not active": f"{_TAXPAYERS}?is_active__exact=0",
    "intermediaries": _INTERMEDIARIES,
    "permissions": _PERMISSIONS,
    "permissions that end in 30 days": f"{_PERMISSIONS}?state=30",
    "permissions in force": f"{_PERMISSIONS}?state=in_force",
    "system users": _SYSTEM_USERS,
    "system users, page 20": f"{_SYSTEM_USERS}?p=20",
    "system users that are blocked": f"{_SYSTEM_USERS}?state=blocked",
    "system users that expired": f"{_SYSTEM_USERS}?state=expired",
    "system users of a taxpayer that is not active": f"{_SYSTEM_USERS}?state=taxpayer",
    "system users that expire in 7 days": f"{_SYSTEM_USERS}?state=7",
    "ending soon": f"{_ENDING}?within=90",
    "ending soon, page 40": f"{_ENDING}?within=90&p=40",
    "ending soon, permissions": f"{_ENDING}?within=90&kind=permission",
    "ended lately": f"{_ENDING}?within=expired",
    "system users without a valid secret": f"{_SYSTEM_USERS}?state=no_secret",
    "logins": _LOGINS,
    "logins of 30 days, refused": f"{_LOGINS}?period=30&reason=refused",
    "logins of 24 hours, one reason": f"{_LOGINS}?period=1&reason=invalid_scope",
    "report of changes": f"{_HISTORY}report/",
    "report of changes until a day": f"{_HISTORY}report/?until={datetime.now(UTC):%Y-%m}-01",
    "report of a person": f"{_HISTORY}report/?by=officer3",
    "report of an import of every taxpayer": f"{_HISTORY}report/?by=importer",
    "report about a taxpayer": f"{_HISTORY}report/?about={{tin}}",
    "as of a date, a taxpayer": f"{_AS_OF}{{tin}}",
    "as of a date, a system user": f"{_AS_OF}{{client_id}}",
    "as of a date, an intermediary's system user": f"{_AS_OF}{{agent_client}}",
    "as of a date, a system user with 10,000 changes": f"{_AS_OF}{client_id(1)}",
    "logins of one hour": f"{_LOGINS}?from={{hour}}&to={{hour_after}}",
    "logins of a month, refused": f"{_LOGINS}?from={{month}}&reason=refused",
    "logins by an intermediary": f"{_LOGINS}?q={{agent}}&role=by",
    "logins by and for an intermediary": f"{_LOGINS}?q={{agent}}",
    "logins by reference, throttled": f"{_LOGINS}?q={{throttled}}",
    "signing keys": "/admin/tokens/signingkey/",
    "protected APIs": "/admin/tokens/protectedapi/",
    "staff accounts": "/admin/staff/staffaccount/",
    "before creating a staff account": "/admin/staff/staffaccount/create_account/",
    "taxpayers by TIN": f"{_TAXPAYERS}?q={{tin}}",
    "taxpayers by name": f"{_TAXPAYERS}?q=taxpayer+{{number}}",
    "permissions by TIN": f"{_PERMISSIONS}?q={{tin}}",
    "system users by TIN": f"{_SYSTEM_USERS}?q={{tin}}",
    "system users by client ID": f"{_SYSTEM_USERS}?q={{client_id}}",
    "system users by name": f"{_SYSTEM_USERS}?q=erp+{{number}}",
    "taxpayers by a part of the name": f"{_TAXPAYERS}?q={{number}}+axpay",
    "taxpayers by a word in every name": f"{_TAXPAYERS}?q=taxpayer",
    "taxpayers by a name without a match": f"{_TAXPAYERS}?q=kedai+runcit",
    "system users by two letters of a name": f"{_SYSTEM_USERS}?q=ta",
    "permissions by a part of a name": f"{_PERMISSIONS}?q=axpayer+{{number}}",
    "search everything by name": "/admin/search/?q=taxpayer+{number}",
    "search everything by a word in every name": "/admin/search/?q=taxpayer",
    "search everything by TIN": "/admin/search/?q={tin}",
    "search everything by client ID": "/admin/search/?q={client_id}",
    "search everything by reference": "/admin/search/?q={login}",
    "search everything, nothing found": "/admin/search/?q=kedai+runcit",
    "logins by reference": f"{_LOGINS}?q={{login}}",
    "logins by client ID": f"{_LOGINS}?q={{client_id}}",
    "logins by TIN": f"{_LOGINS}?q={{tin}}",
    "logins by address": f"{_LOGINS}?q={{address}}",
    "logins by network": f"{_LOGINS}?q={{network}}",
    "search everything by network": "/admin/search/?q={network}",
    "page of a system user": f"{_SYSTEM_USERS}{{number}}/change/",
    "page of a taxpayer": f"{_TAXPAYERS}{{number}}/change/",
    "why did this login fail": f"{_LOGINS}{{login}}/change/",
    "before blocking a system user": f"{_SYSTEM_USERS}{{number}}/block_system_user/",
    "import of permissions": f"{_PERMISSIONS}import_permissions/",
    "before revoking a secret": f"{_SYSTEM_USERS}{{number}}/revoke_secret/",
    "before unblocking a system user": f"{_SYSTEM_USERS}{{blocked}}/unblock_system_user/",
    "simulate a login": f"{_LOGINS}what_would_happen/?client_id={{client_id}}",
    "page of an intermediary": f"{_INTERMEDIARIES}{{agent_number}}/change/",
    "before deactivating an intermediary": (
        f"{_INTERMEDIARIES}{{agent_number}}/deactivate_intermediary/"
    ),
    "before deactivating a taxpayer": f"{_TAXPAYERS}{{agent_number}}/deactivate_taxpayer/",
    "page of a permission": f"{_PERMISSIONS}{{number}}/change/",
    "before revoking a permission": f"{_PERMISSIONS}{{number}}/revoke_permission/",
    "changes of an import of every taxpayer": f"{_HISTORY}task/1/",
    "requests": "/admin/taxpayers/permissionrequest/",
    "sign-ins": "/admin/staff/staffsignin/",
    "webhooks": "/admin/webhooks/webhookendpoint/",
}


def run(
    session: Session, users: int = 1_000_000, events: int = 20_000_000, requests: int = 60
) -> list[Table]:
    """How fast the staff pages are: each page --requests times, one after the other.

    Fails if a page takes more than 300 ms (95th percentile). With --requests 0 it only fills the
    database, which other runs of the same day use again.
    """
    filled = session.template(
        f"month_{users}_{events}_until_{datetime.now(UTC):%Y%m%d}",
        partial(_fill_month, events=events, users=users),
        session.registry(Population(users)),
    )
    if not requests:
        return []
    url = session.copy_of(filled, "staff")
    logins = _some_logins(url, events)
    server = service.start_on(session, "staff", url, SERVE="staff")
    chance = random.Random(1)  # noqa: S311 - which record it is, is no secret
    cookie = run_python("-m", "bench.cases.staff_session", DATABASE_URL=url)
    lines, slow = [], []
    for name, template in PAGES.items():
        paths = [
            _path(template, users, logins, chance) for _ in range(requests + _WARM_UP_REQUESTS)
        ]
        seconds = _request(server, cookie, paths)[_WARM_UP_REQUESTS:]
        p95 = percentile(seconds, 0.95)
        lines.append((name, f"{percentile(seconds, 0.5):.0f}", f"{p95:.0f}"))
        slow += [name] if p95 > _LIMIT_MS else []
        progress(f"{name}: p95 {p95:.0f} ms")
    lines.sort(key=lambda line: -int(line[2]))
    note = (
        f"The slowest of {len(lines)} pages. {users:,} system users, {events:,} logins of a month."
    )
    problem = f"More than {_LIMIT_MS:.0f} ms: {', '.join(slow)}." if slow else ""
    return [Table("staff pages", ("page", "p50 ms", "p95 ms"), lines, note, problem, _IN_PAGE)]


def _path(template: str, users: int, logins: Sequence[str], chance: random.Random) -> str:
    number = chance.randint(1, users)
    agents = Population(users).numbers(Role.INTERMEDIARY)
    agent = chance.choice([agents[0], chance.choice(agents)])  # the first is the busiest
    now = datetime.now(UTC)
    hour = now - timedelta(hours=chance.randint(1, 24 * (_DAYS - 1)))
    return template.format(
        agent=tin(agent),
        agent_number=agent,
        hour=f"{hour:%Y-%m-%dT%H:00Z}",
        hour_after=f"{hour + timedelta(hours=1):%Y-%m-%dT%H:00Z}",
        month=f"{now - timedelta(days=30):%Y-%m-%d}",
        throttled=UUID(int=first_id(hour).int | _UUID7),
        tin=tin(number),
        client_id=client_id(number),
        number=number,
        blocked=chance.choice(Population(users).numbers(Role.BLOCKED)),
        login=chance.choice(logins),
        agent_client=client_id(chance.choice(agents)),
        address=f"10.0.{chance.randrange(256)}.{chance.randrange(1, 255)}",
        network=f"10.0.{chance.randrange(256)}.0/24",
    )


def _fill_month(url: str, events: int, users: int) -> None:
    """Adds the logins, dates of expiry over the coming years, and the history."""
    since = datetime.now(UTC) - timedelta(days=_DAYS)
    add_login_events(url, events, users, since, refused_percent=_REFUSED_PERCENT)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_DATES)
    add_history(url)
    run_python("manage.py", "count_logins", DATABASE_URL=url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def _some_logins(url: str, events: int) -> list[str]:
    """The ids of about 200 logins."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        sample = connection.execute(_SAMPLE, [min(100.0, 100 * 200 / events)])
        return [str(id_) for (id_,) in sample]


def _request(server: Server, cookie: str, paths: Sequence[str]) -> list[float]:
    """How many seconds each page took. Raises RuntimeError if one is refused."""
    seconds = []
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "10.20.0.14", "Cookie": cookie}
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=headers) as client:
        for path in paths:
            started = time.perf_counter()
            answer = client.get(path, headers={"Host": "127.0.0.1"}, timeout=60)
            seconds.append(time.perf_counter() - started)
            if answer.status_code != 200:
                raise RuntimeError(f"{path}: {answer.status_code} {answer.headers}")
    return seconds
