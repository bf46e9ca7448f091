"""Evidence of a grant, a change and an end: as requests give it, and as answers have it."""

from functools import partial
from typing import Any

from rest_framework import serializers

from identity.api.framework.fields import Body, Moment, Start, Text
from taxpayers.evidence import Evidence, EvidenceKind, on_paper, shown
from taxpayers.validation import MAX_EVIDENCE_LENGTH

_text = partial(Text, required=False, max_length=MAX_EVIDENCE_LENGTH)
_PERSON = "Of a person who signed in; then all of these are needed."


class EvidenceBody(Body):
    """Who approved it and how that was proved: a person who signed in, or a paper form."""

    paper_form = _text(help_text="Its number; only this.")
    approved_by = _text(help_text=f"Opaque id. {_PERSON}")
    capacity = _text(help_text="For example director.")
    sign_in_method = _text()
    sign_in_level = _text(help_text="Level of assurance.")
    words_version = _text()
    words_hash = _text(help_text="Of the words shown.")
    at = Start(required=False, help_text="When it was approved. Left out: now.")

    def to_internal_value(self, data: Any) -> Evidence:
        values = super().to_internal_value(data)
        if "paper_form" not in values:
            return Evidence(EvidenceKind.SIGN_IN, **values)
        if values.keys() != {"paper_form"}:
            text = "Give the number of the paper form only, or leave it out."
            raise serializers.ValidationError({"paper_form": [text]})
        return on_paper(values["paper_form"])


class EvidenceRecord(serializers.Serializer[Any]):
    """Who approved it, and how that was proved; what does not apply is not there."""

    kind = serializers.ChoiceField([kind.value for kind in EvidenceKind])
    approved_by = serializers.CharField(required=False, help_text="An opaque id, no name.")
    capacity = serializers.CharField(required=False)
    sign_in_method = serializers.CharField(required=False)
    sign_in_level = serializers.CharField(required=False)
    words_version = serializers.CharField(required=False)
    words_hash = serializers.CharField(required=False)
    paper_form = serializers.CharField(required=False)
    at = Moment(required=False)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        """Of a record: the evidence of its last change."""
        return shown(instance.evidence)
