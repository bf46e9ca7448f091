"""What an ERP system logs in with instead of a secret: entered as text, or uploaded as a file."""

from typing import Any, ClassVar

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminTextareaWidget

from identity.staff.framework.forms import CODE, TaskForm
from taxpayers.client_keys import MAX_KEYS_LENGTH

LONG_TEXT = CODE | {"rows": 6}


class KeysWidget(UnfoldAdminTextareaWidget):
    """Shows nothing of what was entered: it could be a private key."""

    def format_value(self, value: Any) -> str:
        return ""


class TextOrFileForm(TaskForm):
    """A public text, of which the operator of the ERP system has sent a file or a copy."""

    text_field: ClassVar[str]
    file = forms.FileField(label=gettext_lazy("Or its file"), required=False)

    def clean(self) -> None:
        data, name = self.cleaned_data, self.text_field
        file = data.pop("file", None)
        if name in self.errors or "file" in self.errors:
            return
        if file is not None and data.get(name):
            self.add_error("file", _("Enter the text or choose a file, not both."))
        elif file is not None:
            try:
                data[name] = file.read(MAX_KEYS_LENGTH).decode()
            except UnicodeDecodeError:
                self.add_error("file", _("This file is no text: JWK, JWK Set or PEM."))
        if self.is_needed() == bool(data.get(name)) or self.errors:
            return
        if self.is_needed():
            self.add_error(name, _("Enter the text, or choose a file."))
        else:
            self.add_error(name, _("A secret needs none: leave it empty."))

    def is_needed(self) -> bool:
        return True
