"""`createsuperuser`: Django's command, recorded in the history."""

from typing import Any

from django.contrib.auth.management.commands import createsuperuser

from identity.staff.models import StaffAccount


class Command(createsuperuser.Command):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.UserModel = StaffAccount  # its manager records what it creates
