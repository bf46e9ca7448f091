"""System users that log in with a certificate: its names.

A column that may be NULL is added by ALTER TABLE on both databases, so the triggers stay.
"""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("taxpayers", "0014_limits")]
    operations = [
        migrations.AddField(
            model_name="clientsecret",
            name="certificate_name",
            field=models.TextField(
                editable=False, null=True, verbose_name="name in the certificate"
            ),
        ),
        migrations.AlterField(
            model_name="systemuser",
            name="token_endpoint_auth_method",
            field=models.CharField(
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
        migrations.AlterModelOptions(
            name="clientsecret",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("rotate_secret", "Can issue a further client secret"),
                    ("register_client_key", "Can register a key that a system user logs in with"),
                    (
                        "register_client_certificate",
                        "Can register a certificate that a system user logs in with",
                    ),
                    ("change_secret", "Can change from where client secrets may be used"),
                    ("retire_secret", "Can let a client secret end earlier"),
                    ("revoke_secret", "Can revoke client secrets"),
                ],
                "verbose_name": "client secret",
                "verbose_name_plural": "client secrets",
            },
        ),
    ]
