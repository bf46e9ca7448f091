"""The clients of the sandbox as rows: staff have nothing to do for them, so they are not listed."""

from django.db.models import QuerySet

from taxpayers.models import SystemUser
from taxpayers.sandbox.clients import SANDBOX_CLIENT_IDS


def sandbox_users() -> "QuerySet[SystemUser]":
    """Few, and found by the index of client ids; none where ENVIRONMENT is live.

    As `exclude(system_user__in=sandbox_users())`, the index of the list still gives its order.
    """
    return SystemUser.objects.filter(client_id__in=SANDBOX_CLIENT_IDS).order_by()
