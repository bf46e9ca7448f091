"""Every setting of the environment: a row from which all about it is drawn (contract 6).

`read` of `identity.env` makes its value, and `identity.configuration.texts` its lines of
`deploy/identity.env`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from identity.configuration import faults, kinds


@dataclass(frozen=True, slots=True)
class Setting:
    """One of them. `default` and `example` are written as in the environment."""

    name: str
    read: kinds.Reader
    default: str
    meaning: str
    example: str
    # Instead of the default, where that is not one text.
    default_in_words: str = ""
    # What is wrong with a value that could be read.
    check: Callable[[Any], Iterable[faults.Fault]] = field(default=lambda value: (), repr=False)
    # Every production gives it: not a comment in `deploy/identity.env`.
    is_usual: bool = False
    # Nothing starts with a wrong value, no command either: the default would be dangerous.
    is_vital: bool = False
    # Never shown, and can be in a file that <name>_FILE names.
    is_secret: bool = False

    @property
    def shown_default(self) -> str:
        """For `deploy/identity.env`."""
        return self.default_in_words or (f"`{self.default}`" if self.default else "none")

    @property
    def assignment(self) -> str:
        """A right line of `deploy/identity.env`, which systemd and a shell read alike."""
        name = f"{self.name}_FILE" if self.example.startswith("/etc/") else self.name
        return f"{name}='{self.example}'" if '"' in self.example else f"{name}={self.example}"


_SCOPES = '{"InvoicingAPI": {"description": "The e-invoicing APIs", "audience": "InvoicingAPI"}}'
_MORE_SCOPES = (
    f'{_SCOPES[:-1]}, "PermissionRequestAPI": {{"description": "Ask taxpayers for permissions",'
    ' "audience": "IdentityAPI"}, "RepresentativeAPI": {"description": "End what is permitted",'
    ' "audience": "IdentityAPI"}}'
)

# A row: name, how it is read, default; meaning; example, and what few have.
# fmt: off
_ALL = (
    Setting("AUTH_URL", str, "",
            "the base address that clients call, and the issuer of the tokens",
            "https://id.example.org", default_in_words="`http://127.0.0.1:$PORT`",
            check=faults.auth_url, is_usual=True),
    Setting("PORT", kinds.number(0, 65_535), "8000",
            "the port that the server listens on",
            "8000"),
    Setting("BIND", str, "127.0.0.1",
            "the address that the server listens on",
            "10.0.0.11", check=faults.bind),
    Setting("ENVIRONMENT", kinds.choice("live", "test"), "test",
            "`live` or `test`: which credentials are issued and accepted",
            "live", is_usual=True, is_vital=True),
    Setting("SERVE", kinds.choice("login", "staff", "both"), "both",
            "what this process serves: `login`, `staff` or `both`",
            "login", is_vital=True),
    Setting("DATABASE_URL", str, "",
            "`postgresql://user:password@host:port/name`; `?pooling=transaction` behind PgBouncer",
            "postgresql://identity@db.example.org/identity?sslmode=verify-full"
            "&sslrootcert=/etc/identity/database-ca.pem",
            default_in_words="none: SQLite in `var/`", is_usual=True, is_secret=True),
    Setting("SECRET_KEY", str, "",
            "signs sessions and encrypts second factors; at least 50 characters",
            "/etc/identity/secret_key", default_in_words="made in `var/` without a database URL",
            is_usual=True, is_secret=True),
    Setting("SECRET_KEY_FALLBACKS", kinds.texts, "",
            "former ones, comma-separated: with them, sessions and second factors stay valid "
            "after a change",
            "/etc/identity/secret_key_fallbacks", is_secret=True),
    Setting("KEY_ENCRYPTION_KEYS", kinds.texts, "",
            "encrypt the signing keys: comma-separated, the newest first",
            "/etc/identity/key_encryption_keys",
            default_in_words="made in `var/` without a database URL",
            check=faults.encryption_keys, is_usual=True, is_secret=True),
    Setting("ALLOWED_HOSTS", kinds.texts, "",
            "the hosts of `AUTH_URL` and `STAFF_URL`, comma-separated",
            "id.example.org,staff.id.example.org",
            default_in_words="none; `*` without a database URL in `test`", is_usual=True),
    Setting("TRUSTED_PROXIES", kinds.texts, "",
            "addresses or networks whose `X-Forwarded-*` are believed; needed with an https "
            "`AUTH_URL`",
            "127.0.0.1,10.0.0.5", check=faults.trusted_proxies, is_usual=True),
    Setting("MTLS_URL", str, "",
            "the address at which a trusted proxy asks clients for certificates "
            "(`docs/scaling.md`); without it no node looks at a certificate",
            "https://mtls.id.example.org", check=faults.certificate_url),
    Setting("PROXY_SECRET", kinds.texts, "",
            "the proxy of `MTLS_URL` proves by it that a certificate is from there: 32 or more "
            "letters, digits, `_` and `-`; a former one may follow after a comma; needed with "
            "`MTLS_URL` in `live`",
            "/etc/identity/proxy_secret", check=faults.proxy_secret, is_secret=True),
    Setting("STAFF_URL", str, "",
            "the address that staff open; passkeys are bound to its name",
            "https://staff.id.example.org",
            default_in_words="`AUTH_URL`, with `localhost` for `127.0.0.1`",
            check=faults.staff_url, is_usual=True),
    Setting("HSTS_SECONDS", kinds.number(0, 315_360_000), "31536000",
            "how long browsers open the staff pages by HTTPS only, with an https `AUTH_URL`; 0 "
            "switches it off",
            "31536000"),
    Setting("SECOND_PERSON_REQUIRED", kinds.FLAG, "",
            "new accounts, roles, first passwords and reset second steps of staff with a duty "
            "wait for a second person, and superusers only read (`docs/staff.md`)",
            "True", default_in_words="`True` in `live`, `False` in `test`"),
    Setting("SESSION_IDLE_MINUTES", kinds.number(1, 1440), "30",
            "staff must sign in again after so many minutes without a click",
            "15"),
    Setting("SESSION_LONGEST_HOURS", kinds.number(1, 720), "10",
            "staff must sign in again after so many hours in any case",
            "8"),
    Setting("SIGNING_ALGORITHM", str, "ES256",
            "algorithm of the first signing key: `ES256`, `RS256` or `PS256`",
            "PS256"),
    Setting("SECRET_LIFETIME_DAYS", kinds.number(1, 36_500), "365",
            "how many days a new client secret is valid",
            "180"),
    Setting("LOGIN_RETENTION", kinds.duration("30d", "36500d"), "",
            "how long login events are stored, at least `30d`; the nightly work deletes older ones",
            "2555d", default_in_words="none: all are stored"),
    Setting("STATUS_LIST_HORIZON", kinds.duration("1m", "1h"), "30m",
            "how long protected APIs use a status list while no node answers, `1m` to `1h`; a "
            "client blocked meanwhile is accepted so long",
            "15m"),
    Setting("OFFLINE_BLOCK_KEYS", kinds.texts, "",
            "public keys, comma-separated, whose files of `block_offline` this node obeys "
            "(`docs/reliability.md`)",
            "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo", check=faults.offline_block_keys),
    Setting("SCOPES", kinds.JSON, _SCOPES,
            'JSON: `{"name": {"description": "…", "audience": "…"}}`; `RegistryAPI` is for '
            "programs that manage the registry (`docs/management-api.md`), the other two for "
            "permissions (`docs/permission-requests.md`)",
            _MORE_SCOPES, default_in_words="`InvoicingAPI`", check=faults.scopes, is_vital=True),
    Setting("EVIDENCE_REQUIRED", kinds.FLAG, "False",
            "each grant, change and end of a permission says who approved it "
            "(`docs/permission-requests.md`)",
            "True"),
    Setting("PERMISSION_REQUEST_DAYS", kinds.number(1, 365), "21",
            "how many days a taxpayer has to decide a request for a permission",
            "21"),
    Setting("OPEN_REQUESTS_MOST", kinds.number(1, 1_000_000), "1000",
            "how many requests for permissions an intermediary may have open",
            "5000"),
    Setting("CONFIRM_URL", str, "",
            "where taxpayers confirm requests for permissions, if not below `AUTH_URL`; the "
            "audience of portal tickets",
            "https://confirm.id.example.org", default_in_words="`AUTH_URL` and `/confirm`",
            check=faults.confirmation_url),
    Setting("PORTAL_URL", str, "",
            "the portal's address to which a confirm link without a ticket leads; it signs the "
            "taxpayer in and comes back with one",
            "https://portal.example.org/permission-requests", check=faults.portal_url),
    Setting("SYSTEM_WARNINGS", kinds.JSON, "[]",
            "JSON: what will be refused from a date on, announced in `X-System-Warning` "
            "(`docs/erp-developers.md`)",
            '[{"text": "Send the secret in the body.", "from": "2027-01-31",'
            ' "condition": "client_secret_basic"}]',
            default_in_words="none", is_vital=True),
    Setting("TIN_PATTERN", str, "[A-Z0-9]{5,20}",
            "how this country writes the number of a taxpayer",
            "[A-Z]{1,2}[0-9]{9,11}", check=partial(faults.number_pattern, "TIN_PATTERN")),
    Setting("ROB_PATTERN", str, "[A-Z0-9-]{5,20}",
            "how it writes the number of a registered business",
            "[0-9]{12}", check=partial(faults.number_pattern, "ROB_PATTERN")),
    Setting("TIME_ZONE", kinds.TIME_ZONE, "Asia/Kuala_Lumpur",
            "time zone of the authority, for dates without a time",
            "Asia/Kuala_Lumpur", is_vital=True),
    Setting("WEB_PROCESSES", kinds.number(1, 256), "2",
            "processes of the server, each with one event loop: one for each core",
            "4"),
    Setting("WEB_THREADS", kinds.number(1, 256), "4",
            "threads of each process for pages, and as many for `/api/v1/`",
            "4"),
    Setting("WEB_REQUESTS", kinds.number(1, 100_000), "256",
            "logins in progress of each process; beyond it 503 `temporarily_unavailable`",
            "256"),
    Setting("WEB_CONNECTIONS", kinds.number(1, 1_000_000), "10000",
            "connections of each process; beyond it 503 as well",
            "10000"),
    Setting("LOCAL_FACTS_MEGABYTES", kinds.number(1, 1_000_000), "1024",
            "how large the cache of a node may grow in which its processes remember clients: "
            "`local-facts` in `VAR_DIR`, about 0.4 kB a client; safe to delete at any time. Not "
            "used with SQLite",
            "1024"),
    Setting("WEBHOOK_ALLOWED_NETWORKS", kinds.networks, "",
            "networks to which webhooks are sent though they are not public, comma-separated; "
            "`http` is only for these (`docs/webhooks.md`)",
            "10.20.0.0/24"),
    Setting("WEBHOOK_RETENTION_DAYS", kinds.number(4, 36_500), "30",
            "how many days deliveries of webhooks are stored after their end",
            "90"),
    Setting("OTEL_EXPORTER_OTLP_ENDPOINT", kinds.collector, "",
            "the collector to which OpenTelemetry traces of logins are sent, by OTLP over HTTP; "
            "needs `requirements-traces.txt` (`docs/operations.md`)",
            "http://127.0.0.1:4318", default_in_words="none: no traces"),
    Setting("OTEL_TRACES_SAMPLER_ARG", kinds.SHARE, "0.01",
            "the share of requests that get a trace, from 0 to 1; where a trusted proxy sends "
            "`traceparent`, that decides",
            "0.05"),
    Setting("ACCEPTED_RISKS", kinds.texts, "",
            "ids of checks, comma-separated: the server starts in `live` although `manage.py check "
            "--deploy` warns of these (`docs/operations.md`)",
            "tokens.W009"),
    Setting("DEBUG", kinds.FLAG, "False",
            "Django's error pages with settings and code: only for developers",
            "False"),
    Setting("LOG_LEVEL", kinds.choice("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), "INFO",
            "how much is logged; `WARNING` leaves out the line of each login",
            "WARNING"),
    Setting("LOG_FORMAT", kinds.choice("json", "text"), "",
            "how log lines are written: `json`, an object on each line, or `text`, for people",
            "json", default_in_words="`json`; `text` on a terminal"),
    Setting("VAR_DIR", str, "",
            "SQLite, metrics, local facts and sample data; closed to every other user of the "
            "machine",
            "/var/lib/identity", default_in_words="`var/` of the checkout", is_usual=True),
    Setting("STATIC_DIR", str, "",
            "where `collectstatic` puts the static files of the staff pages, and a node reads "
            "them",
            "/opt/identity/static", default_in_words="`static` in `VAR_DIR`"),
)
# fmt: on
SETTINGS = {setting.name: setting for setting in _ALL}
