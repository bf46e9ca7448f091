"""The registry: its tables, the first permission codes, and what PostgreSQL needs to be fast.

The triggers are no migration: `migrate` puts in place those of its version (`taxpayers/facts/triggers.py`).
"""

import django.db.models.deletion
import django.db.models.fields.json
import django.db.models.functions.datetime
import django.utils.timezone
import uuid_utils.compat
from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError, migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps

import taxpayers.models.usage
from taxpayers.models.name_lookups import folded_sql

# Contract 4: the codes that the table starts with.
_CODES = {
    "documents:submit": "Submit documents in the taxpayer's name",
    "documents:view": "View the taxpayer's documents",
    "documents:cancel": "Cancel documents that the taxpayer issued",
    "documents:reject": "Reject documents that the taxpayer received",
}
# A plain index serves LIKE only in the C collation, so these have the operators for patterns, and
# names are found by any part of them (pg_trgm). A model cannot say so without
# django.contrib.postgres; SQLite, for a demo's few rows, needs none.
_INDEXES = {
    "taxpayer_by_tin_prefix": "taxpayers (tin varchar_pattern_ops)",
    "taxpayer_by_rob_prefix": "taxpayers (rob varchar_pattern_ops)",
    "change_by_label_prefix": "changes (label varchar_pattern_ops)",
    "taxpayer_by_name_part": f"taxpayers USING gin ({folded_sql('name')} gin_trgm_ops)",
    "system_user_by_name_part": f"system_users USING gin ({folded_sql('name')} gin_trgm_ops)",
}
_OTHERS = (
    # A row that changes at each login finds place for its next version in its own page: then no
    # index is written.
    "ALTER TABLE client_usage SET (fillfactor = 80)",
    "CREATE SEQUENCE status_index_numbers MINVALUE 0 START 0",
)
# The extension is trusted: a role that may create objects in the database may create it, too.
_HOW_TO_FIX = (
    "Searching names needs PostgreSQL's extension pg_trgm, and this role may not create it, or it"
    " is not installed. Install the package with PostgreSQL's additional modules (for example"
    " postgresql-contrib), let an administrator execute CREATE EXTENSION pg_trgm; in this database,"
    " and migrate again."
)


def create_permission_codes(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    model = apps.get_model("taxpayers", "PermissionCode")
    for code, description in _CODES.items():
        model.objects.get_or_create(code=code, defaults={"description": description})


def tune_postgresql(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    if schema_editor.connection.vendor != "postgresql":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'pg_trgm'")
        is_there = cursor.fetchone() is not None
    if not is_there:
        try:
            schema_editor.execute("CREATE EXTENSION pg_trgm")
        except DatabaseError as error:
            raise CommandError(f"{_HOW_TO_FIX} PostgreSQL says: {error}") from None
    for name, columns in _INDEXES.items():
        schema_editor.execute(f"CREATE INDEX {name} ON {columns}", params=None)
    for statement in _OTHERS:
        schema_editor.execute(statement, params=None)


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="EndedStatusIndex",
            fields=[
                ("number", models.BigAutoField(primary_key=True, serialize=False)),
                ("index", models.BigIntegerField(unique=True)),
                ("ended_at", models.DateTimeField()),
            ],
            options={
                "db_table": "ended_status_indexes",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SystemUser",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(blank=True, max_length=255, verbose_name="name")),
                ("created", models.DateTimeField(auto_now_add=True, verbose_name="created")),
                ("updated", models.DateTimeField(auto_now=True, verbose_name="updated")),
                (
                    "client_id",
                    models.CharField(
                        editable=False, max_length=64, unique=True, verbose_name="client ID"
                    ),
                ),
                (
                    "scopes",
                    models.CharField(
                        default="InvoicingAPI",
                        help_text="Separated by blanks.",
                        max_length=255,
                        verbose_name="scopes",
                    ),
                ),
                (
                    "logins_per_minute",
                    models.PositiveIntegerField(
                        default=12,
                        help_text="0: unlimited, still counted.",
                        verbose_name="logins per minute",
                    ),
                ),
                ("expires_at", models.DateTimeField(blank=True, null=True, verbose_name="expires")),
                (
                    "token_endpoint_auth_method",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "Client secret"),
                            ("private_key_jwt", "Private key (private_key_jwt)"),
                            ("tls_client_auth", "Certificate (tls_client_auth)"),
                        ],
                        db_default="",
                        default="",
                        editable=False,
                        max_length=32,
                        verbose_name="login method",
                    ),
                ),
                (
                    "token_binding",
                    models.CharField(
                        blank=True,
                        choices=[
                            (
                                "",
                                "Nothing: anybody who has a token can use it",
                            ),
                            (
                                "dpop",
                                "A key of the client (DPoP)",
                            ),
                            (
                                "tls",
                                "The client's TLS certificate",
                            ),
                        ],
                        db_default="",
                        default="",
                        editable=False,
                        max_length=8,
                        verbose_name="tokens bound to",
                    ),
                ),
                (
                    "allowed_permissions",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        verbose_name="allowed permissions",
                    ),
                ),
                (
                    "allowed_taxpayers",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        verbose_name="allowed taxpayers",
                    ),
                ),
                (
                    "only_on_behalf",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        editable=False,
                        verbose_name="only on behalf of others",
                    ),
                ),
                (
                    "return_addresses",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        verbose_name="return addresses",
                    ),
                ),
                (
                    "blocked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="blocked"),
                ),
                (
                    "blocked_by",
                    models.CharField(
                        blank=True, editable=False, max_length=150, verbose_name="blocked by"
                    ),
                ),
                (
                    "blocked_reason",
                    models.CharField(
                        blank=True, editable=False, max_length=500, verbose_name="reason"
                    ),
                ),
                ("last_secret_ends_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "verbose_name": "system user",
                "verbose_name_plural": "system users",
                "db_table": "system_users",
                "abstract": False,
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="StatusChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("system_user_id", models.BigIntegerField(null=True)),
                ("ended_index", models.BigIntegerField(null=True)),
            ],
            options={
                "db_table": "status_changes",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="UploadedFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("content", models.BinaryField()),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField()),
            ],
            options={
                "db_table": "uploaded_files",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="HistoryCheck",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(editable=False, verbose_name="when")),
                ("places", models.BigIntegerField(editable=False)),
                ("chain_hash", models.CharField(blank=True, editable=False, max_length=64)),
                ("fault", models.TextField(blank=True, editable=False)),
            ],
            options={
                "db_table": "history_checks",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="when"
                    ),
                ),
                ("by", models.CharField(editable=False, max_length=150, verbose_name="who")),
                (
                    "address",
                    models.GenericIPAddressField(editable=False, null=True, verbose_name="from"),
                ),
                ("action", models.CharField(editable=False, max_length=64, verbose_name="action")),
                (
                    "object_type",
                    models.CharField(editable=False, max_length=64, verbose_name="kind"),
                ),
                ("object_id", models.CharField(editable=False, max_length=64)),
                ("label", models.CharField(editable=False, max_length=255, verbose_name="what")),
                (
                    "reason",
                    models.CharField(
                        blank=True, editable=False, max_length=500, verbose_name="why"
                    ),
                ),
                ("before", models.JSONField(default=dict, editable=False, verbose_name="before")),
                ("after", models.JSONField(default=dict, editable=False, verbose_name="after")),
                ("task_id", models.UUIDField(editable=False, null=True, verbose_name="task")),
                ("position", models.BigIntegerField(editable=False, null=True)),
                (
                    "chain_hash",
                    models.CharField(
                        blank=True, db_default="", default="", editable=False, max_length=64
                    ),
                ),
            ],
            options={
                "verbose_name": "change",
                "verbose_name_plural": "history",
                "db_table": "changes",
                "ordering": ["-at", "-by", "-id"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("position__isnull", True)),
                        fields=["id"],
                        name="change_without_position",
                    ),
                    models.Index(
                        fields=["object_type", "object_id", "-at"], name="change_of_object"
                    ),
                    models.Index(fields=["-at", "-by", "-id"], name="change_by_time"),
                    models.Index(fields=["by", "-at", "-id"], name="change_by_who"),
                    models.Index(fields=["action", "-at", "-by", "-id"], name="change_by_action"),
                    models.Index(
                        condition=models.Q(("task_id__isnull", False)),
                        fields=["task_id", "-id"],
                        name="change_of_task",
                    ),
                    models.Index(
                        django.db.models.fields.json.KeyTransform("tin", "before"),
                        condition=models.Q(("action", "undo_import")),
                        name="change_that_removed",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("position__isnull", False)),
                        fields=("position",),
                        name="change_by_position",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PermissionCode",
            fields=[
                (
                    "code",
                    models.CharField(
                        max_length=64, primary_key=True, serialize=False, verbose_name="code"
                    ),
                ),
                (
                    "description",
                    models.CharField(blank=True, max_length=255, verbose_name="description"),
                ),
            ],
            options={
                "verbose_name": "permission code",
                "verbose_name_plural": "permission codes",
                "db_table": "permission_codes",
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("code__regex", "^[a-z0-9_]+(:[a-z0-9_]+)*$")),
                        name="permission_code_form",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RateLimitCounter",
            fields=[
                (
                    "system_user",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="usage",
                        serialize=False,
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                    ),
                ),
                ("window_started_at", models.DateTimeField()),
                ("used", models.PositiveIntegerField()),
                ("secrets_used", models.JSONField(default=dict)),
                (
                    "epoch",
                    models.BigIntegerField(
                        db_default=taxpayers.models.usage.RandomEpoch(), editable=False
                    ),
                ),
            ],
            options={
                "db_table": "client_usage",
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="StatusIndex",
            fields=[
                ("index", models.BigIntegerField(primary_key=True, serialize=False)),
                ("system_user_id", models.BigIntegerField()),
                ("secret_id", models.BigIntegerField()),
                ("tin", models.CharField(max_length=64)),
                ("rob", models.CharField(blank=True, max_length=64)),
                ("actor", models.CharField(blank=True, max_length=129)),
                ("scopes", models.JSONField(default=dict)),
                ("permissions", models.JSONField(default=dict)),
                ("check_at", models.DateTimeField(null=True)),
                (
                    "version",
                    models.BigIntegerField(
                        db_default=taxpayers.models.usage.RandomEpoch(), editable=False
                    ),
                ),
                (
                    "taken_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
            ],
            options={
                "db_table": "status_indexes",
                "default_permissions": (),
                "indexes": [
                    models.Index(
                        condition=models.Q(("check_at__isnull", False)),
                        fields=["check_at"],
                        name="status_index_by_check",
                    ),
                    models.Index(fields=["taken_at"], name="status_index_by_taking"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("system_user_id", "secret_id", "tin", "rob", "actor"),
                        name="status_index_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Taxpayer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tin", models.CharField(max_length=64, verbose_name="TIN")),
                (
                    "rob",
                    models.CharField(
                        blank=True, default="", max_length=64, verbose_name="ROB number"
                    ),
                ),
                ("name", models.CharField(max_length=255, verbose_name="name")),
                (
                    "is_active",
                    models.BooleanField(db_default=True, default=True, verbose_name="active"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="registered"
                    ),
                ),
            ],
            options={
                "verbose_name": "taxpayer",
                "verbose_name_plural": "taxpayers",
                "db_table": "taxpayers",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_active", False)),
                        fields=["tin", "rob"],
                        name="taxpayer_not_active",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("tin", "rob"), name="taxpayer_named_once"),
                    models.CheckConstraint(
                        condition=models.Q(("tin", ""), _negated=True), name="taxpayer_has_tin"
                    ),
                ],
            },
        ),
        migrations.AddField(
            model_name="systemuser",
            name="taxpayer",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.PROTECT,
                related_name="system_users",
                to="taxpayers.taxpayer",
                verbose_name="taxpayer",
            ),
        ),
        migrations.CreateModel(
            name="Intermediary",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "is_active",
                    models.BooleanField(db_default=True, default=True, verbose_name="active"),
                ),
                (
                    "active_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="active until"),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="registered"
                    ),
                ),
                (
                    "taxpayer",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="intermediary",
                        to="taxpayers.taxpayer",
                        verbose_name="taxpayer",
                    ),
                ),
            ],
            options={
                "verbose_name": "intermediary",
                "verbose_name_plural": "intermediaries",
                "db_table": "intermediaries",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="GrantedPermission",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "valid_from",
                    models.DateTimeField(
                        default=django.utils.timezone.now, verbose_name="valid from"
                    ),
                ),
                (
                    "valid_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="valid until"),
                ),
                (
                    "revoked_at",
                    models.DateTimeField(
                        blank=True, editable=False, null=True, verbose_name="revoked"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="granted"
                    ),
                ),
                (
                    "first_used_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="first used"),
                ),
                (
                    "evidence",
                    models.JSONField(editable=False, null=True, verbose_name="evidence"),
                ),
                (
                    "intermediary",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="permissions",
                        to="taxpayers.intermediary",
                        verbose_name="intermediary",
                    ),
                ),
                (
                    "codes",
                    models.ManyToManyField(
                        db_table="granted_permission_codes",
                        to="taxpayers.permissioncode",
                        verbose_name="permission codes",
                    ),
                ),
                (
                    "taxpayer",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="granted",
                        to="taxpayers.taxpayer",
                        verbose_name="represented taxpayer",
                    ),
                ),
            ],
            options={
                "verbose_name": "granted permission",
                "verbose_name_plural": "granted permissions",
                "db_table": "granted_permissions",
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="Credential",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("slot", models.PositiveSmallIntegerField(editable=False, null=True)),
                ("lookup", models.CharField(editable=False, max_length=80)),
                ("hint", models.CharField(editable=False, max_length=8, verbose_name="ends with")),
                (
                    "public_jwk",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        verbose_name="public key",
                    ),
                ),
                (
                    "certificate_name",
                    models.TextField(
                        editable=False, null=True, verbose_name="name in the certificate"
                    ),
                ),
                (
                    "allowed_networks",
                    models.TextField(
                        blank=True,
                        db_default="",
                        default="",
                        editable=False,
                        verbose_name="allowed networks",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="created"
                    ),
                ),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                (
                    "revoked_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="revoked"),
                ),
                (
                    "system_user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="credentials",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="system user",
                    ),
                ),
            ],
            options={
                "verbose_name": "client secret",
                "verbose_name_plural": "client secrets",
                "db_table": "credentials",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("slot__isnull", False)),
                        fields=["expires_at"],
                        name="secret_by_end",
                    ),
                    models.Index(fields=["hint"], name="secret_by_hint"),
                    models.Index(
                        condition=models.Q(
                            ("slot__isnull", False),
                            models.Q(("allowed_networks", ""), _negated=True),
                        ),
                        fields=["-id", "system_user", "allowed_networks"],
                        name="secret_by_network",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("system_user", "lookup"), name="secret_stored_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("slot__isnull", False)),
                        fields=("system_user", "slot"),
                        name="secret_two_live_at_most",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("slot__in", (1, 2))), name="secret_slot_is_1_or_2"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("revoked_at__isnull", True), ("slot__isnull", True), _connector="OR"
                        ),
                        name="secret_revoked_leaves_its_slot",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("created_at__lt", models.F("expires_at"))),
                        name="secret_created_before_expiry",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="systemuser",
            index=models.Index(
                condition=models.Q(("expires_at__isnull", False)),
                fields=["expires_at"],
                name="system_user_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="systemuser",
            index=models.Index(
                condition=models.Q(("blocked_at__isnull", False)),
                fields=["-blocked_at"],
                name="system_user_blocked",
            ),
        ),
        migrations.AddIndex(
            model_name="systemuser",
            index=models.Index(fields=["last_secret_ends_at"], name="system_user_by_last_secret"),
        ),
        migrations.AddConstraint(
            model_name="systemuser",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("blocked_at__isnull", True), ("blocked_by", ""), ("blocked_reason", "")
                    ),
                    models.Q(
                        ("blocked_at__isnull", False),
                        models.Q(("blocked_by", ""), _negated=True),
                        models.Q(("blocked_reason", ""), _negated=True),
                    ),
                    _connector="OR",
                ),
                name="system_user_block_has_who_and_why",
            ),
        ),
        migrations.AddIndex(
            model_name="intermediary",
            index=models.Index(
                condition=models.Q(("active_until__isnull", False)),
                fields=["active_until"],
                name="intermediary_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="grantedpermission",
            index=models.Index(fields=["intermediary", "taxpayer"], name="permission_pair"),
        ),
        migrations.AddIndex(
            model_name="grantedpermission",
            index=models.Index(
                condition=models.Q(("revoked_at__isnull", True), ("valid_until__isnull", False)),
                fields=["valid_until"],
                name="permission_by_end",
            ),
        ),
        migrations.AddIndex(
            model_name="grantedpermission",
            index=models.Index(
                condition=models.Q(("revoked_at__isnull", False)),
                fields=["-revoked_at"],
                name="permission_revoked",
            ),
        ),
        migrations.AddConstraint(
            model_name="grantedpermission",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("valid_until__isnull", True),
                    ("valid_from__lt", models.F("valid_until")),
                    _connector="OR",
                ),
                name="permission_from_before_until",
            ),
        ),
        migrations.CreateModel(
            name="PermissionRequest",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tin", models.CharField(max_length=64, verbose_name="TIN")),
                (
                    "rob",
                    models.CharField(
                        blank=True, default="", max_length=64, verbose_name="ROB number"
                    ),
                ),
                (
                    "client_id",
                    models.CharField(
                        blank=True, editable=False, max_length=64, verbose_name="client ID"
                    ),
                ),
                ("codes", models.TextField(verbose_name="permission codes or scopes")),
                (
                    "public_jwk",
                    models.TextField(blank=True, editable=False, verbose_name="public key"),
                ),
                ("name", models.CharField(blank=True, max_length=100, verbose_name="name")),
                (
                    "source",
                    models.CharField(
                        blank=True, editable=False, max_length=64, verbose_name="source address"
                    ),
                ),
                (
                    "valid_from",
                    models.DateTimeField(blank=True, null=True, verbose_name="valid from"),
                ),
                (
                    "valid_until",
                    models.DateTimeField(blank=True, null=True, verbose_name="valid until"),
                ),
                (
                    "replaces",
                    models.BooleanField(
                        default=False, verbose_name="replaces the present permissions"
                    ),
                ),
                (
                    "own_reference",
                    models.CharField(blank=True, max_length=128, verbose_name="own reference"),
                ),
                ("return_address", models.TextField(blank=True, verbose_name="return address")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("approved", "Approved"),
                            ("declined", "Declined"),
                            ("withdrawn", "Withdrawn"),
                            ("expired", "Expired"),
                        ],
                        default="open",
                        editable=False,
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now, editable=False, verbose_name="asked"
                    ),
                ),
                ("expires_at", models.DateTimeField(verbose_name="expires")),
                (
                    "decided_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="decided"),
                ),
                ("evidence", models.JSONField(editable=False, null=True, verbose_name="evidence")),
                (
                    "intermediary",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        to="taxpayers.intermediary",
                        verbose_name="intermediary",
                    ),
                ),
                (
                    "permission",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        to="taxpayers.grantedpermission",
                        verbose_name="permission",
                    ),
                ),
                (
                    "system_user",
                    models.ForeignKey(
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="requests",
                        to=settings.OAUTH2_PROVIDER_APPLICATION_MODEL,
                        verbose_name="system user",
                    ),
                ),
            ],
            options={
                "verbose_name": "permission request",
                "verbose_name_plural": "permission requests",
                "db_table": "permission_requests",
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["tin", "rob", "-id"], name="request_of_taxpayer"),
                    models.Index(fields=["intermediary", "-id"], name="request_of_intermediary"),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["intermediary", "tin", "rob"],
                        name="request_open",
                    ),
                    models.Index(
                        condition=models.Q(("state", "open")),
                        fields=["expires_at"],
                        name="request_by_end",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("permission__isnull", False),
                                ("state", "approved"),
                                ("system_user__isnull", True),
                            ),
                            models.Q(
                                ("permission__isnull", True),
                                ("state", "approved"),
                                ("system_user__isnull", False),
                            ),
                            models.Q(
                                models.Q(("state", "approved"), _negated=True),
                                ("permission__isnull", True),
                                ("system_user__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="request_approved_has_result",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("intermediary__isnull", False), ("public_jwk", "")),
                            models.Q(
                                ("intermediary__isnull", True),
                                models.Q(("public_jwk", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="request_of_intermediary_or_key",
                    ),
                ],
            },
        ),
        migrations.RunPython(create_permission_codes, migrations.RunPython.noop),
        migrations.RunPython(tune_postgresql, migrations.RunPython.noop),
    ]
