"""An officer as tests see one: signed in, in one group, looking at pages and sending forms."""

import csv
import io
import re
from html import unescape
from typing import Any

from django.db.models import Model
from django.test import Client
from django.urls import reverse

from tests.support.accounts import new_staff, signed_in, with_totp

ADDRESS = "203.0.113.50"


def staff_client(role: str | None = None, name: str = "aminah") -> Client:
    """A client signed in as a member of the group; None: as a superuser."""
    user = new_staff(role or "", name, password=None)
    return signed_in(with_totp(user), REMOTE_ADDR=ADDRESS)


def list_url(model: type[Model]) -> str:
    opts = model._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")


def page_url(record: Model) -> str:
    opts = record._meta
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_change", args=[record.pk])


def task_url(model: type[Model] | Model, task: str) -> str:
    opts = model._meta
    arguments = [model.pk] if isinstance(model, Model) else []
    return reverse(f"admin:{opts.app_label}_{opts.model_name}_{task}", args=arguments)


def text_of(response: Any) -> str:
    assert response.status_code == 200, response.status_code
    html = re.sub(r"<(script|style)\b.*?</\1>", " ", response.content.decode(), flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def csv_rows_of(response: Any) -> list[list[str]]:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return rows_of_csv(content)


def rows_of_csv(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode("utf-8-sig"))))


def opened(client: Client, url: str) -> dict[str, Any]:
    """What the hidden fields of its form say, as a browser sends them back."""
    return hidden_of(client.get(url))


def hidden_of(page: Any) -> dict[str, Any]:
    return {field.html_name: field.value() for field in page.context["form"].hidden_fields()}


def errors_of(response: Any) -> str:
    form = response.context["form"]
    return " ".join(str(error) for errors in form.errors.values() for error in errors)
