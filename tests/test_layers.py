"""identity -> tokens -> taxpayers, never the other way; and no rule here that cannot fail."""

from collections.abc import Iterator
from itertools import chain

import pytest

from tests.servers.processes import CHECKOUT
from tests.support import layers
from tests.support.source_tree import SourceTree

ROOMS = ("identity", "tokens", "taxpayers")
# From top to bottom: a room uses only rooms on floors below it, so those on one floor do not know
# each other. A new folder or module beside them needs a place here.
FLOORS: layers.Floors = {
    "": tuple((room,) for room in ROOMS),
    "tokens": (
        ("apps",),
        ("urls", "management"),
        ("checks",),
        ("operations",),
        ("self_service",),
        ("resource_server",),
        ("discovery", "explanation", "system_warnings"),
        ("answers",),
        ("request",),
        ("store",),
        ("metrics",),
        ("dpop",),
        ("client_auth",),
        ("status_lists",),
        ("access_tokens",),
        ("keys",),
        ("protected_apis",),
        ("calls",),
        ("rate_limits",),
        ("login_events",),
        ("form_encoding",),
        ("refusals",),
        ("models",),
        ("actions", "http", "lifetime", "login_settings", "uptime"),
    ),
    "taxpayers": (
        ("apps",),
        ("management",),
        ("secret_once",),
        ("services",),
        ("files", "sandbox", "similar_names", "standing"),
        ("validation",),
        ("rules",),
        ("models",),
        ("facts",),
        ("certificates", "client_keys", "operations"),
        ("actions", "async_sql", "evidence", "redaction"),
        ("prepared_statements",),
        (
            *("credential_kind", "credentials", "duties", "identifiers", "keyset"),
            *("moments", "names", "repeated", "shut_down", "sql"),
        ),
        ("value",),
    ),
    "identity": (
        ("settings",),
        ("staff_settings",),
        ("staff",),
        ("asgi",),
        ("doors", "middleware"),
        ("urls",),
        ("not_taken", "uploads"),
        ("api", "confirm", "demo", "errors", "wsgi", "deployment"),
        ("developers", "server", "webhooks", "env", "metrics_files"),
        (*("sandbox", "traces", "health", "logs", "management_api", "private_files"),),
        (*("configuration", "databases", "demo_address", "long_headers", "readiness"), "version"),
    ),
    "identity.staff": (
        ("apps", "admin", "management", "urls"),
        ("templatetags",),
        ("overview", "search"),
        ("system_users",),
        ("registry",),
        ("protected_apis", "webhooks"),
        ("logins",),
        ("accounts",),
        ("navigation", "page_protection"),
        ("expiring", "imports", "error_pages"),
        ("history",),
        ("models",),
        ("framework",),
        ("actions", "sessions", "display", "checks"),
    ),
}
PURE = {
    *(
        "taxpayers.value",
        "taxpayers.identifiers",
        "taxpayers.credentials",
        "taxpayers.duties",
        "taxpayers.rules",
    ),
    *("taxpayers.actions", "taxpayers.operations", "tokens.actions", "identity.webhooks.actions"),
    *("taxpayers.client_keys", "taxpayers.certificates"),
    *("taxpayers.redaction", "taxpayers.names", "taxpayers.standing.standing"),
    *("taxpayers.facts.values", "taxpayers.facts.validity"),
    *(f"taxpayers.facts.epochs.{module}" for module in ("row", "postgresql", "sqlite")),
    *(f"tokens.request.{noun}" for noun in ("form", "on_behalf_of", "token_request")),
    *("tokens.form_encoding", "tokens.lifetime", "tokens.access_tokens.claims"),
    "tokens.refusals.table",
    *(f"tokens.client_auth.{noun}" for noun in ("authenticated", "assertion", "methods")),
    *("tokens.client_auth.client_secret", "tokens.client_auth.private_key_jwt"),
    *("tokens.client_auth.certificate", "tokens.client_auth.tls_client_auth"),
    *("tokens.client_auth.compact_jws", "tokens.access_tokens.verification"),
    *("tokens.rate_limits.backoff", "tokens.rate_limits.quota"),
    *("tokens.rate_limits.throttle", "tokens.rate_limits.call_limit"),
    *("tokens.keys.ring", "tokens.system_warnings", "taxpayers.sandbox.clients"),
    "tokens.calls",
    *("tokens.status_lists.assignment", "tokens.status_lists.format"),
    *("taxpayers.facts.status_triggers", "taxpayers.facts.token_binding"),
    *("taxpayers.credential_kind", "taxpayers.facts.source_networks"),
    *(f"identity.webhooks.{n}" for n in ("sending.attempts", "destination")),
    "identity.webhooks.event_types",
    *(f"tokens.dpop.{n}" for n in ("nonce", "proof")),
}
OAUTH_LIBRARIES = (
    "taxpayers.models.system_user",
    "tokens.operations.toolkit",
    "tokens.migrations.toolkit",
)
SIGNALS = ("identity.wsgi",)  # it disconnects two of Django's own receivers
PACKAGE = "einvoicing_tokens"  # for API teams, in packages/
FRAMEWORKS = {
    "django": ("django", "rest_framework"),
    "fastapi": ("fastapi", "starlette"),
    "flask": ("flask", "werkzeug"),
}  # each known only to the adapter of that name
STAFF_LIBRARIES = ("allauth", "csp", "unfold", "whitenoise", "django.contrib.admin")


def rules(tree: SourceTree) -> dict[str, Iterator[str]]:
    return {
        "every room is on one floor": layers.rooms_without_floor(tree, FLOORS),
        "a room uses only rooms on floors below": layers.climbing_imports(tree, FLOORS),
        "folders do not use each other in a circle": layers.circles_of_folders(tree),
        "pure modules": layers.impure_imports(tree, PURE),
        "OAuth libraries": layers.foreign_importers(
            tree, ("oauthlib", "oauth2_provider"), OAUTH_LIBRARIES
        ),
        "staff libraries": layers.foreign_importers(
            tree, STAFF_LIBRARIES, ("identity.staff", "identity.staff_settings")
        ),
        "no signals": layers.foreign_importers(tree, layers.SIGNALS, SIGNALS),
        "no logic in save()": layers.logic_in_models(tree),
        "no drawers": layers.drawers(tree),
        "templates are for staff": layers.templates_of_machines(tree, ("tokens", "taxpayers")),
        "templates know nothing above them": layers.upward_templates(
            tree, FLOORS["identity.staff"]
        ),
        "templates exist and are used": layers.missing_templates(tree),
        "the service needs no package of its callers": layers.foreign_importers(
            tree, (PACKAGE,), ()
        ),
    }


def package_rules(tree: SourceTree) -> dict[str, Iterator[str]]:
    adapters = (
        layers.foreign_importers(tree, libraries, (f"{PACKAGE}.{adapter}",))
        for adapter, libraries in FRAMEWORKS.items()
    )
    return {
        "it knows nothing of the service": layers.foreign_importers(tree, (*ROOMS, "tests"), ()),
        "it needs no framework": chain.from_iterable(adapters),
        "no circles": layers.circles_of_folders(tree),
        "no drawers": layers.drawers(tree),
    }


HOUSE = SourceTree(CHECKOUT, ROOMS)
PACKAGED = SourceTree(CHECKOUT / "packages" / PACKAGE / "src", (PACKAGE,))


@pytest.mark.parametrize("rule", rules(HOUSE))
def test_the_code_follows(rule: str) -> None:
    assert list(rules(HOUSE)[rule]) == []


@pytest.mark.parametrize("rule", package_rules(PACKAGED))
def test_the_package_for_api_teams_follows(rule: str) -> None:
    assert len(PACKAGED.modules) > 10
    assert list(package_rules(PACKAGED)[rule]) == []
