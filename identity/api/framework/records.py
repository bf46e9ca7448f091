"""The views of every kind of record: a list, a record, a task."""

from functools import cache
from typing import Any

from django.db.models import Model
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from identity.api.framework.fields import pointer_of, values_of
from identity.api.framework.idempotency import Done, answer_once, etag_of, require_match
from identity.api.framework.kinds import ApiTask, Listing, Once, RecordKind, described
from identity.api.framework.problem_answers import refused
from identity.api.framework.problems import Problem
from identity.api.framework.query import bad_place, read_query
from identity.api.framework.view import ManagementView
from identity.management_api import BASE_PATH
from taxpayers.duties import SCOPE_OF_DUTY, Duty
from taxpayers.services import OnlyOperators, ServiceError
from taxpayers.services.history import lock_for_update
from tokens.resource_server.pagination import BadCursor, page_of


class RecordView(ManagementView):
    kind: RecordKind = None  # type: ignore[assignment]  # given by as_view, as the others
    task: ApiTask | None = None  # None: it is only read

    def get(self, request: Request, **address: Any) -> Response:
        row = self.found(address)
        body = self.represent(row)
        return Response(body, headers={"ETag": etag_of(body)})

    def post(self, request: Request, **address: Any) -> Response:
        """From the look for an earlier answer on, everything is one transaction."""
        task = self.task
        assert task is not None  # noqa: S101 - of the methods that change something
        values = values_of(task.body, request.data)

        def do() -> Done:
            row = self.locked(request, address)
            try:
                done = task.do(row, address, **values, by=self.author, at=self.caller.at)
            except OnlyOperators:
                raise
            except ServiceError as fault:
                raise refused(fault, pointer_of(task.body, fault.fields)) from None
            return self.answer(done, is_new=row is None)

        return answer_once(request, self.caller.token.client_id, self.caller.at, do)

    patch = post

    @property
    def duty(self) -> Duty:
        """That of the task, if programs have it; otherwise that of the kind."""
        duty = self.task.operation.duty if self.task else None
        return duty if duty and duty in SCOPE_OF_DUTY else self.kind.duty

    @property
    def read_by(self) -> frozenset[Duty]:
        return self.kind.also_read_by | {self.kind.duty}

    def locked(self, request: Request, address: dict[str, Any]) -> Model | None:
        """The record, locked until the end. Raises Problem if it has changed."""
        lock_for_update(self.found(address))
        row = self.found(address)  # as it is under the lock, with what belongs to it
        require_match(request.headers.get("If-Match", ""), etag_of(self.represent(row)))
        return row

    def answer(self, done: Model | Once, *, is_new: bool) -> Done:
        """The record after the change, and what is shown once; the latter is never stored."""
        row = done.row if isinstance(done, Once) else done
        if self._deletes:
            return Done(None, {}, 204)
        address = self.kind.address(row)
        body = self.represent(self.found({self.kind.parameter: address}))
        headers = {"ETag": etag_of(body)}
        # A record that was there before, with the same values, is no new one.
        status = (
            201 if is_new and getattr(row, "created_at", None) in (None, self.caller.at) else 200
        )
        if is_new:
            headers["Location"] = f"/{BASE_PATH}/{self.kind.name}/{address}"
        stored = shown = body
        if isinstance(done, Once):
            shown = {**body, "issued": done.shown}
            stored = {**body, "issued": {**done.shown, **done.later}}
        return Done(shown, stored, status, headers)

    # --- The record ---------------------------------------------------------------------------

    def found(self, address: dict[str, Any]) -> Model:
        """Raises Problem if there is no such record."""
        row = self.kind.find(str(address[self.kind.parameter]))
        if row is None or (
            self.kind.owner and getattr(row, self.kind.owner) != self.caller.token.client_id
        ):
            raise Problem("not_found", f"There is no such {self.kind.singular}.")
        return row

    def represent(self, row: Model) -> dict[str, Any]:
        return dict(self.kind.record(row, context=self.context).data)

    @property
    def context(self) -> dict[str, Any]:
        """What records depend on: the moment, and whether the token may change this kind."""
        may_change = not set(self.caller.token.scopes).isdisjoint(self.scopes_for("POST"))
        return {"at": self.caller.at, "may_change": may_change}

    # --- Its description ----------------------------------------------------------------------

    @property
    def _deletes(self) -> bool:
        return self.task is not None and self.task.name == "delete"

    @property
    def _id(self) -> str:
        parts = self.task.parameters if self.task else ()
        return "".join(f"{part}_of_" for part in parts) + self.kind.singular.replace(" ", "_")

    def describe(self, method: str) -> dict[str, Any]:
        path = {self.kind.parameter: self.kind.names}
        if method == "GET":
            return {
                "id": f"read_{self._id}",
                "summary": f"Read the {self.kind.singular}",
                "tag": self.kind.name,
                "path": path,
                "answer": self.kind.record,
                "has_etag": True,
            }
        task = self.task
        assert task is not None  # noqa: S101 - of the methods that change something
        name = task.verb or task.name or ("change" if method == "PATCH" else "create")
        is_new = method == "POST" and not task.name
        return {
            "id": f"{name.replace('-', '_')}_{self._id}",
            **described(task.operation, task.note),
            "tag": self.kind.name,
            "path": {} if is_new else {**path, **task.parameters},
            "body": task.body,
            "answer": None if self._deletes else task.answer or self.kind.record,
            "statuses": (200, 201) if is_new else (204,) if self._deletes else (200,),
            "needs_match": not is_new,
            "has_etag": not self._deletes,
        }


class ListView(RecordView):
    """A list of records, or of what belongs to one; where `task` is given, POST adds a record."""

    listing: Listing = None  # type: ignore[assignment]
    is_of_record = False

    def get(self, request: Request, **address: Any) -> Response:
        given = read_query(request, self.listing.filters)
        owner = [self.found(address)] if self.is_of_record else []
        cursor, limit = given.pop("cursor", ""), given.pop("limit")
        rows = self.listing.chosen(given, *owner)
        if self.kind.owner and not owner:
            rows = rows.filter(**{self.kind.owner: self.caller.token.client_id})
        try:
            page = page_of(
                rows, self.listing.order, cursor=cursor, limit=limit, name=self.listing.name
            )
        except BadCursor:
            detail = "Send the next_cursor of the page before, or leave it out to begin again."
            raise bad_place("cursor", detail) from None
        items = self.listing.record(page.rows, many=True, context=self.context).data
        return Response({"items": items, "next_cursor": page.next_cursor})

    def locked(self, request: Request, address: dict[str, Any]) -> Model | None:
        """A new record: there is none to lock."""
        return None

    def describe(self, method: str) -> dict[str, Any]:
        if method != "GET":
            return super().describe(method)
        return {
            "id": f"list_{self.listing.name}",
            "summary": self.listing.summary,
            "tag": self.kind.name,
            "path": {self.kind.parameter: self.kind.names} if self.is_of_record else {},
            "filters": self.listing.filters,
            "answer": page_record(self.listing.record),
        }


@cache
def page_record(record: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The description of a page of these records."""
    return type(
        f"PageOf{record.__name__}",
        (serializers.Serializer,),
        {
            "items": record(many=True),
            "next_cursor": serializers.CharField(
                allow_null=True, help_text="null on the last page."
            ),
            "__doc__": "One page of a list.",
        },
    )
