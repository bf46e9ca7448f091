"""identity -> tokens -> taxpayers, never the other way; and no rule here that cannot fail."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from tests.servers.processes import CHECKOUT
from tests.support import layers
from tests.support.source_tree import SourceTree

ROOMS = ("identity", "tokens", "taxpayers")  # each may import itself and those to its right
# From top to bottom: a room uses only rooms on floors below it, so those on one floor do not know
# each other. A new folder or module beside them needs a place here.
FLOORS: layers.Floors = {
    "tokens": (
        ("apps", "urls", "management"),
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
        ("actions", "http", "lifetime", "uptime"),
    ),
    "taxpayers": (
        ("apps", "management"),
        ("checks",),
        ("secret_once",),
        ("services",),
        ("files", "sandbox", "similar_names", "standing"),
        ("validation",),
        ("rules",),
        ("models",),
        ("facts",),
        ("operations",),
        ("actions", "async_sql", "redaction"),
        (
            *("certificates", "client_keys", "credential_kind", "credentials", "duties"),
            *("identifiers", "moments", "names", "shut_down", "sql"),
        ),
    ),
    "identity": (
        ("settings",),
        ("staff_settings",),
        ("staff",),
        ("asgi",),
        ("doors", "middleware"),
        ("urls",),
        ("not_taken", "uploads"),
        ("api", "errors", "wsgi", "deployment"),
        ("demo", "developers", "server", "webhooks", "env", "metrics_files"),
        (*("sandbox", "traces", "health", "logs", "management_api", "private_files"),),
        (
            *("configuration", "databases", "demo_address", "long_headers", "readiness"),
            *("node_metrics", "version"),
        ),
    ),
    "identity.staff": (
        ("apps", "admin", "management", "urls"),
        ("templatetags",),
        ("overview", "search"),
        ("system_users",),
        ("registry",),
        ("protected_apis",),
        ("logins",),
        ("accounts",),
        ("navigation", "typed_secrets"),
        ("expiring", "imports", "error_pages"),
        ("history",),
        ("models",),
        ("framework",),
        ("actions", "admin_app", "sessions", "display", "checks", "content_security"),
    ),
}
APPLICATIONS = (
    *("identity.staff", "identity.api", "identity.webhooks", "identity.demo"),
    *("tokens", "taxpayers"),
)

# Why each may import a module of ours inside a function.
IMPORTS_IN_FUNCTIONS = {
    "tokens.apps": "the system checks need what a login needs: a command starts without them",
}
PURE = {
    *("taxpayers.identifiers", "taxpayers.credentials", "taxpayers.duties", "taxpayers.rules"),
    *("taxpayers.actions", "taxpayers.operations", "tokens.actions", "identity.webhooks.actions"),
    *("taxpayers.client_keys", "taxpayers.certificates.names", "taxpayers.certificates.subject"),
    *("taxpayers.redaction", "taxpayers.names", "taxpayers.standing.standing"),
    *("taxpayers.facts.values", "taxpayers.facts.validity"),
    *(f"taxpayers.facts.epochs.{module}" for module in ("row", "postgresql", "sqlite", "triggers")),
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
    *(f"identity.webhooks.{n}" for n in ("sending.attempts", "destination", "signatures")),
    "identity.webhooks.event_types",
    *(f"tokens.dpop.{n}" for n in ("nonce", "proof", "target")),
}
OAUTH_LIBRARIES = ("taxpayers.models.system_user", "tokens.operations.toolkit")
SIGNALS = ("identity.wsgi",)  # it disconnects two of Django's own receivers
PACKAGE = "einvoicing_tokens"  # for API teams, in packages/
FRAMEWORKS = {
    "django": ("django", "rest_framework"),
    "fastapi": ("fastapi", "starlette"),
    "flask": ("flask", "werkzeug"),
}  # each known to the adapter of that name alone
STAFF_LIBRARIES = ("allauth", "csp", "unfold", "whitenoise", "django.contrib.admin")


def rules(tree: SourceTree) -> dict[str, Iterator[str]]:
    """Every rule of this code base, by its name, with what violates it in this tree."""
    return {
        "a room imports only itself and those below": layers.upward_imports(tree, ROOMS),
        "every room is on one floor": layers.rooms_without_floor(tree, FLOORS),
        "a room uses only rooms on floors below": layers.climbing_imports(tree, FLOORS),
        "folders do not use each other in a circle": layers.circles_of_folders(tree),
        "imports stand at the top": layers.imports_in_functions(tree, IMPORTS_IN_FUNCTIONS),
        "no circles": layers.circles(tree),
        "pure modules": layers.impure_imports(tree, PURE),
        "settings": layers.imported_applications(tree, "identity.settings", APPLICATIONS),
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
    """Every rule of the package for API teams, as for the service."""
    adapters = (
        layers.foreign_importers(tree, libraries, (f"{PACKAGE}.{adapter}",))
        for adapter, libraries in FRAMEWORKS.items()
    )
    return {
        "it knows nothing of the service": layers.foreign_importers(tree, (*ROOMS, "tests"), ()),
        "it needs no framework": chain.from_iterable(adapters),
        "imports stand at the top": layers.imports_in_functions(tree, ()),
        "no circles": layers.circles(tree),
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


@pytest.mark.parametrize(
    ("rule", "code", "violation"),
    [
        ("it knows nothing of the service", "from tokens.http import f", "tokens.http.f"),
        ("it knows nothing of the service", "import taxpayers.rules", "taxpayers.rules"),
        ("it needs no framework", "from django.conf import settings", "django.conf.settings"),
        ("it needs no framework", "def f():\n    import flask", "flask"),
        ("it needs no framework", "import rest_framework.views", "rest_framework.views"),
        ("it needs no framework", "from starlette import testclient", "starlette.testclient"),
    ],
)
def test_a_rule_of_the_package_finds_what_violates_it(
    rule: str, code: str, violation: str, tmp_path: Path
) -> None:
    (tmp_path / PACKAGE).mkdir()
    (tmp_path / PACKAGE / "keys.py").write_text(code, encoding="utf-8")
    (tmp_path / PACKAGE / "django.py").write_text("import rest_framework", encoding="utf-8")
    found = list(package_rules(SourceTree(tmp_path, (PACKAGE,)))[rule])
    assert found == [f"{PACKAGE}.keys imports {violation}"]


EVERY_ROOM = {
    f"{root.replace('.', '/')}/{room}/__init__.py": ""
    for root, floors in FLOORS.items()
    for room in chain.from_iterable(floors)
}


# A rule, files with what stands in them, and what it finds.
VIOLATIONS = r"""
## a room imports only itself and those below
taxpayers/rules.py: from tokens import http
tokens/http.py:
=> taxpayers.rules imports tokens.http
## a room imports only itself and those below
tokens/http.py: def f():\n    if 1:\n        import identity.urls
=> tokens.http imports identity.urls
## a room imports only itself and those below
taxpayers/rules.py: from ..tokens.http import f
=> taxpayers.rules imports tokens.http.f
## a room imports only itself and those below
taxpayers/rules.py: HOOK = 'tokens.http.f'
tokens/http.py:
=> taxpayers.rules names tokens.http.f
## a room uses only rooms on floors below
identity/staff/framework/a.py: import identity.staff.registry.taxpayers
identity/staff/registry/taxpayers.py:
=> identity.staff.framework.a uses identity.staff.registry.taxpayers
## a room uses only rooms on floors below
tokens/http.py:
tokens/uptime.py: from tokens import http
=> tokens.uptime uses tokens.http
## a room uses only rooms on floors below
tokens/keys/a.py: def f():\n    import tokens.store.b
tokens/store/b.py:
=> tokens.keys.a uses tokens.store.b
## a room uses only rooms on floors below
tokens/keys/a.py: HOOK = 'tokens.store.b.f'
tokens/store/b.py:
=> tokens.keys.a uses tokens.store.b
## folders do not use each other in a circle
tokens/keys/x/a.py: from tokens.keys.y import d
tokens/keys/x/b.py:
tokens/keys/y/c.py: from tokens.keys.x import b
tokens/keys/y/d.py:
=> tokens.keys: x -> y -> x
## imports stand at the top
identity/staff/apps.py: class C:\n def ready(self):\n  from tokens import http
tokens/apps.py: class C:\n def ready(self):\n  from tokens import http
tokens/http.py: def f():\n    import decimal
=> identity.staff.apps imports tokens.http
## no circles
tokens/a.py: from tokens import b
tokens/b.py: from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from tokens.a import A
=> tokens.a -> tokens.b -> tokens.a
## settings
identity/settings.py: from identity import env
identity/env.py: if 1:\n    from identity.staff.navigation import sidebar
identity/staff/navigation.py:
=> identity.env imports identity.staff.navigation.sidebar
## OAuth libraries
taxpayers/rules.py: import oauthlib
taxpayers/models/system_user.py: import oauthlib
=> taxpayers.rules imports oauthlib
## staff libraries
tokens/models.py: from django.contrib.admin.models import LogEntry
identity/staff/admin.py: from django.contrib import admin
=> tokens.models imports django.contrib.admin.models.LogEntry
## no signals
tokens/models.py: from django.db.models.signals import post_save
identity/wsgi.py: from django.core.signals import request_started
=> tokens.models imports django.db.models.signals.post_save
## no logic in save()
tokens/models.py: class A:\n    def save(self): ...\n    def clean(self): ...
=> tokens.models.A.save
## no drawers
tokens/utils/dates.py:
=> tokens.utils.dates
## templates are for staff
tokens/templates/a.html:
taxpayers/templatetags/dates.py: from django import template
taxpayers/models.py: TEMPLATE = 'staff/a.html'
identity/staff/not_found.py: from django.shortcuts import render
=> tokens/templates
=> tokens/templates/a.html
=> taxpayers/templatetags
=> taxpayers.templatetags.dates imports django.template
=> taxpayers.models names staff/a.html
## templates know nothing above them
identity/staff/templatetags/logins.py: from identity.staff.logins.impact import impact\n
templates/staff/framework/p.html: {% load x logins %}{% include "staff/registry/r.html" with a=b %}
templates/staff/framework/task.html: {% load impact from logins %}
templates/staff/registry/r.html: {% load logins %}{% extends "staff/framework/p.html" %}
=> staff/framework/p.html loads logins
=> staff/framework/p.html uses staff/registry/r.html
=> staff/framework/task.html loads logins
## templates exist and are used
identity/staff/not_found.py: PAGE = 'staff/framework/old.html'
templates/404.html: {% include "staff/framework/page.html" %}
templates/staff/framework/page.html:
templates/staff/framework/new.html:
=> staff/framework/old.html is missing
=> staff/framework/new.html is not used
## the service needs no package of its callers
tokens/http.py: from einvoicing_tokens import TokenVerifier
=> tokens.http imports einvoicing_tokens.TokenVerifier
"""


def violations() -> Iterator[tuple[str, dict[str, str], list[str]]]:
    for case in VIOLATIONS.split("## ")[1:]:
        rule, *lines = case.strip("\n").splitlines()
        found = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        files = (line.partition(": ") for line in lines if not line.startswith("=> "))
        yield rule, {n.rstrip(":"): t.replace("\\n", "\n") for n, _, t in files}, found


CASES = [
    *violations(),
    (
        "every room is on one floor",
        EVERY_ROOM | {"tokens/new/a.py": "", "identity/staff/new.py": ""},
        ["tokens.new is on no floor", "identity.staff.new is on no floor"],
    ),
    (
        "every room is on one floor",
        {name: "" for name in EVERY_ROOM if "tokens/keys" not in name},
        ["tokens.keys is not there"],
    ),
    (
        "pure modules",
        {
            **{f"{module.replace('.', '/')}.py": "" for module in PURE},
            "taxpayers/rules.py": "from django.conf import settings\nimport tokens.http",
            "tokens/http.py": "",
        },
        [
            "taxpayers.rules imports django.conf.settings",
            "taxpayers.rules imports tokens.http",
        ],
    ),
]


@pytest.mark.parametrize(("rule", "files", "violations"), CASES)
def test_a_rule_finds_what_violates_it(
    rule: str, files: dict[str, str], violations: list[str], tmp_path: Path
) -> None:
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert list(rules(SourceTree(tmp_path, ROOMS))[rule]) == violations


def test_every_rule_was_seen_to_find_something() -> None:
    proved = {rule for rule, _, _ in CASES}
    assert proved == rules(HOUSE).keys()
