"""Registered taxpayers with a name like a new one: a second registration is noticed before."""

from django.db import connection, transaction

from taxpayers.models import Taxpayer
from taxpayers.names import distinctive_words, similarity

MAX_SHOWN = 5
_MAX_CANDIDATES = 200
_ALIKE = 0.5  # from 0 to 1; of the words that are not in many names


def similar_taxpayers(name: str) -> list[Taxpayer]:
    """At most MAX_SHOWN, the most similar one first."""
    found = {row.pk: (similarity(name, row.name), row) for row in _candidates(name)}
    alike = [(score, row) for score, row in found.values() if score >= _ALIKE]
    alike.sort(key=lambda each: (-each[0], each[1].name, each[1].pk))
    return [row for _score, row in alike[:MAX_SHOWN]]


def _candidates(name: str) -> list[Taxpayer]:
    every_word = Taxpayer.objects.filter(name__has_words=" ".join(distinctive_words(name)))
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:  # until the end of the transaction
                cursor.execute(f"SET LOCAL pg_trgm.word_similarity_threshold = {_ALIKE}")
        similar = list(Taxpayer.objects.filter(name__is_similar_to=name)[:_MAX_CANDIDATES])
    return [*every_word[:_MAX_CANDIDATES], *similar]
