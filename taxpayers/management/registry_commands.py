"""The commands for taxpayers, intermediaries and permissions (contract 6)."""

from functools import partial
from typing import Any

from django.core.management.base import CommandParser

from taxpayers.management.arguments import (
    EARLIER,
    LATER,
    PAPER_FORM,
    day,
    parse_start,
    parse_taxpayer_id,
    read_tin_and_rob,
    words,
)
from taxpayers.management.command import Output
from taxpayers.management.find_records import find_intermediary, find_taxpayer
from taxpayers.management.operation_command import (
    ChangedEnd,
    IntermediaryCommand,
    Named,
    OperationCommand,
    Options,
    PermissionCommand,
    PermissionRequestCommand,
    TaxpayerCommand,
)
from taxpayers.management.table import Commands, command
from taxpayers.models import Change, GrantedPermission, Intermediary
from taxpayers.moments import format_moment
from taxpayers.operations import by_reason_in
from taxpayers.services import decisions, ends, granted_permissions, intermediaries, taxpayers
from taxpayers.services.granted_permissions import codes_of
from taxpayers.services.undo_import import UNDO_IMPORT

_ROLE = "{row.taxpayer.identifier} ({row.taxpayer.name})"
_DONE = {
    "activate_taxpayer": "{row.identifier} ({row.name}) is active.",
    "deactivate_taxpayer": "{row.identifier} ({row.name}) is not active.\n{effect}",
    "activate_intermediary": f"{_ROLE} is an active intermediary.",
    "deactivate_intermediary": f"{_ROLE} is no longer active.\n{{effect}}",
}


class _RegisterTaxpayer(TaxpayerCommand):
    operation = taxpayers.REGISTER_TAXPAYER
    fields = {"name": {"required": True, "help": "name of the taxpayer, for staff"}}
    takes_reason = False
    done = (
        "{row.identifier} is registered as {row.name}.\n"
        "Next, for its ERP: manage.py issue_credentials {row.identifier} --name NAME"
    )

    def given(self, options: Options) -> dict[str, Any]:
        return {"taxpayer": read_tin_and_rob(options), **super().given(options)}


class _RegisterIntermediary(TaxpayerCommand):
    operation = intermediaries.REGISTER_INTERMEDIARY
    fields = {"until": day("--until", "last day; omitted: no end date")}
    takes_reason = False

    def given(self, options: Options) -> dict[str, Any]:
        return {"taxpayer": self.find(options), **super().given(options)}

    def data(self, row: Intermediary) -> dict[str, Any]:
        return {
            "intermediary": row.taxpayer.identifier,
            "is_active": row.is_active,
            "active_until": row.active_until,
        }

    def text(self, row: Intermediary) -> str:
        name = row.taxpayer.identifier
        until = f" until {format_moment(row.active_until)}" if row.active_until else ""
        return (
            f"{name} ({row.taxpayer.name}) is an intermediary{until}.\n"
            f"Next, for each taxpayer that it acts for: manage.py grant_permission"
            f" --taxpayer TIN --intermediary {name} --permission documents:submit"
        )


class _PairCommand(OperationCommand):
    """`--taxpayer TIN[:ROB] --intermediary TIN[:ROB]`."""

    def add_record(self, parser: CommandParser) -> None:
        for name, who in (("taxpayer", "who permits"), ("intermediary", "who may act for it")):
            parser.add_argument(
                f"--{name}", metavar="TIN[:ROB]", type=parse_taxpayer_id, required=True, help=who
            )

    def given(self, options: Options) -> dict[str, Any]:
        return {
            "taxpayer": find_taxpayer(options["taxpayer"]),
            "intermediary": find_intermediary(options["intermediary"]),
            **super().given(options),
        }


_codes = partial(words, "--permission", "CODE")


class _GrantPermission(_PairCommand):
    operation = granted_permissions.GRANT_PERMISSION
    fields = {
        "codes": _codes("what it may do, for example documents:submit", required=True),
        "valid_from": day("--from", "first day; omitted: from now on", type=parse_start),
        "valid_until": day("--until", "last day; omitted: no end date"),
        "evidence": PAPER_FORM,
    }
    takes_reason = False

    def data(self, row: GrantedPermission) -> dict[str, Any]:
        return {
            "taxpayer": row.taxpayer.identifier,
            "intermediary": row.intermediary.taxpayer.identifier,
            "permissions": codes_of(row),
            "valid_from": row.valid_from,
            "valid_until": row.valid_until,
        }

    def text(self, row: GrantedPermission) -> str:
        taxpayer, end = row.taxpayer.identifier, row.valid_until
        until = f" until {format_moment(end)}" if end else ", with no end date"
        return (
            f"{row.intermediary.taxpayer.identifier} may act for {taxpayer} from"
            f" {format_moment(row.valid_from)}{until}: {', '.join(codes_of(row))}.\n"
            f"Its ERP logs in with the header onbehalfof: {taxpayer}"
        )


class _RevokePermission(_PairCommand):
    operation = granted_permissions.REVOKE_CODES
    fields = {
        "codes": _codes("what to revoke; omitted: everything", default=[]),
        "evidence": PAPER_FORM,
    }

    def answer(self, done: list[GrantedPermission], options: Options) -> Output:
        taxpayer, intermediary = options["taxpayer"], options["intermediary"]
        ended_codes = {code for row in done for code in codes_of(row)}
        revoked = sorted(ended_codes.intersection(options["codes"] or ended_codes))
        return Output(
            {"taxpayer": taxpayer, "intermediary": intermediary, "revoked": revoked},
            f"Revoked: {intermediary} no longer has {', '.join(revoked)} from {taxpayer}."
            if revoked
            else f"Nothing to do: {intermediary} no longer has any of that from {taxpayer}.",
        )


class _EndOfRole(ChangedEnd, IntermediaryCommand):
    done = f"{_ROLE} is an intermediary {{until}}."


class _EndOfPermission(ChangedEnd, PermissionCommand):
    done = "The permission {row} is valid {until}."


_EVIDENCE = {"evidence": PAPER_FORM}
COMMANDS: Commands = {
    **{
        record.name: command(base, record, _DONE.get(record.name, ""))
        for base, module in ((TaxpayerCommand, taxpayers), (IntermediaryCommand, intermediaries))
        for record in by_reason_in(vars(module))
    },
    "register_taxpayer": _RegisterTaxpayer,
    "rename_taxpayer": command(
        TaxpayerCommand,
        taxpayers.RENAME_TAXPAYER,
        "{row.identifier} has the name {row.name}.",
        fields={"name": {"required": True, "help": "its new name, for staff"}},
    ),
    "undo_import": command(
        OperationCommand,
        UNDO_IMPORT,
        "{row} taxpayers are removed.",
        note="",
        named=Named(
            *("change", Change),
            "The history has no change {}. The address of its page has it.",
            *(int, "of the page of one of its changes"),
            metavar="NUMBER",
        ),
        data=lambda _command, count: {"removed": count},
    ),
    "register_intermediary": _RegisterIntermediary,
    "set_permission_code": command(
        OperationCommand,
        granted_permissions.SET_PERMISSION_CODE,
        "{row.code}: {row.description}",
        fields={
            "code": {"flag": "", "metavar": "CODE", "help": "for example documents:submit"},
            "description": {"required": True, "help": "what it permits, for staff"},
        },
        takes_reason=False,
        data=lambda _command, row: {"code": row.code, "description": row.description},
    ),
    "grant_permission": _GrantPermission,
    "revoke_permission": _RevokePermission,
    "revoke_one_permission": command(
        PermissionCommand,
        granted_permissions.REVOKE_PERMISSION,
        "The permission {row} is revoked.\n{effect}",
        fields=_EVIDENCE,
    ),
    **{
        operation.name: command(base, operation, base.done, fields={"until": until, **evidence})
        for base, evidence, extend, end_earlier in (
            (_EndOfRole, {}, ends.EXTEND_INTERMEDIARY, ends.END_INTERMEDIARY_EARLIER),
            (_EndOfPermission, _EVIDENCE, ends.EXTEND_PERMISSION, ends.END_PERMISSION_EARLIER),
        )
        for operation, until in ((extend, LATER), (end_earlier, EARLIER))
    },
    **{
        operation.name: command(
            PermissionRequestCommand,
            operation,
            "The request {row} is approved.\n{effect}",
            fields={
                "codes": words(flag, name, "some of those asked for; omitted: all", default=[]),
                "until": day("--until", "an earlier last day than asked for"),
                **_EVIDENCE,
            },
        )
        for operation, flag, name in (
            (decisions.APPROVE_PERMISSION_REQUEST, "--permission", "CODE"),
            (decisions.APPROVE_CONNECTION, "--scope", "SCOPE"),
        )
    },
    **{
        operation.name: command(
            PermissionRequestCommand,
            operation,
            "The request {row} is declined.\n{effect}",
            fields=_EVIDENCE,
        )
        for operation in (decisions.DECLINE_PERMISSION_REQUEST, decisions.DECLINE_CONNECTION)
    },
}
