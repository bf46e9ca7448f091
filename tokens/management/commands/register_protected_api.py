"""`register_protected_api NAME --audience AUDIENCE`: it may ask about tokens (contract 2)."""

from django.core.management.base import CommandParser

from taxpayers.management.arguments import add_end
from taxpayers.management.command import Output
from taxpayers.management.operation_command import OperationCommand, Options
from tokens.protected_apis.registration import REGISTER_PROTECTED_API, IssuedApiSecret
from tokens.protected_apis.secret_once import api_secret_data, api_secret_text


class Command(OperationCommand):
    operation = REGISTER_PROTECTED_API
    fields = ("name", "audience", "secret_expires_at")
    note = ""

    def add_record(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="name of the API, for staff")
        parser.add_argument("--audience", required=True, help="audience of the tokens for it")
        add_end(parser, "--secret-expires", "secret_expires_at", "last day of the secret")

    def answer(self, done: IssuedApiSecret, options: Options) -> Output:
        api = done.protected_api
        data = {"name": api.name, "audience": api.audience}
        return Output(api_secret_data(done) | data, api_secret_text(done))
