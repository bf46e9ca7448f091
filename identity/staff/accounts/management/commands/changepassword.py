"""`changepassword`: Django's own would leave no record, so this is `set_first_password`."""

from identity.staff.accounts.management.commands import set_first_password


class Command(set_first_password.Command):
    help = "The same as set_first_password."
