"""Logins are counted in taxpayers.Usage; what was counted is of a minute that is over."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tokens", "0005_login_counts"), ("taxpayers", "0007_usage")]
    operations = [migrations.DeleteModel(name="LoginAllowance")]
