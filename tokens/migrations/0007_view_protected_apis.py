"""Staff may see protected APIs on a page."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("tokens", "0006_used_assertions"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="protectedapi",
            options={
                "default_permissions": ("view",),
                "permissions": [
                    ("register_protected_api", "Can register protected APIs"),
                    ("activate_protected_api", "Can activate protected APIs"),
                    ("deactivate_protected_api", "Can deactivate protected APIs"),
                ],
                "verbose_name": "protected API",
                "verbose_name_plural": "protected APIs",
            },
        ),
    ]
