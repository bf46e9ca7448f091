"""`reset_second_factor`: for staff who lost their second factor and their recovery codes."""

from identity.staff.accounts.changes.second_steps import RESET_SECOND_FACTOR
from identity.staff.accounts.management.account_command import AccountCommand
from taxpayers.management.command import Output
from taxpayers.management.operation_command import Options


class Command(AccountCommand):
    operation = RESET_SECOND_FACTOR
    note = ""

    def answer(self, done: list[str], options: Options) -> Output:
        name = options["username"]
        listed = ", ".join(done) or "nothing, there was none"
        text = f"{name} sets up a new second step at the next sign-in. Removed: {listed}."
        return Output({"username": name, "removed": len(done)}, text)
