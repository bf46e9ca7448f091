"""What an account may do: its permissions, without duties that one person must not have."""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend

from identity.staff.accounts.roles import must_be_separate, usable
from identity.staff.models import StaffAccount


class StaffBackend(ModelBackend):
    """Django's own, but an account whose duties need two people only reads."""

    def get_user(self, user_id: int) -> StaffAccount | None:
        """As a StaffAccount, which asks this backend even if it is a superuser."""
        account = StaffAccount.objects.filter(pk=user_id).first()
        return account if account and self.user_can_authenticate(account) else None

    def get_all_permissions(self, user_obj: Any, obj: Any = None) -> set[str]:
        held = super().get_all_permissions(user_obj, obj)
        is_exempt = user_obj.is_superuser and not settings.SECOND_PERSON_REQUIRED
        return held if is_exempt else set(usable(held))

    def only_reads(self, account: StaffAccount) -> bool:
        """Whether duties of this active account need two people, so that it can use none."""
        if account.is_superuser:
            return bool(settings.SECOND_PERSON_REQUIRED)
        return must_be_separate(super().get_all_permissions(account))
