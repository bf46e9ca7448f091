"""`name__has_words` and `name__is_similar_to`: names by any part, answered by one index.

PostgreSQL has an index of trigrams on FOLDED of each name (a migration creates it, and must have
the very same expression). SQLite, for a demo's few rows, reads the names.
"""

from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db.models import CharField, Lookup

from taxpayers.names import SEPARATORS, SHORTEST_PART, distinctive_words, glob_of, words_of

Sql = tuple[str, Any]
_LONGEST_TEXT = 400  # longer than each name; and SQLite takes no pattern of any length
_BEST_CANDIDATES = 4  # distinctive words that SQLite looks for


def folded_sql(column: str) -> str:
    """SQL for the folded name with a blank before it, so that every word has one.

    A name in ASCII, as most are, needs no Unicode: what that costs would be spent on each row.
    """
    without_accents = (
        f"normalize(regexp_replace(normalize({column}, NFD), '[\\u0300-\\u036f]', '', 'g'), NFC)"
    )
    is_ascii = f"octet_length({column}) = char_length({column})"
    capitals = f"upper(CASE WHEN {is_ascii} THEN {column} ELSE {without_accents} END)"
    separators, blanks = SEPARATORS.replace("'", "''"), " " * len(SEPARATORS)
    return f"(' ' || translate({capitals}, '{separators}', '{blanks}'))"


class _NameLookup(Lookup):
    prepare_rhs = False

    def column(self, compiler: Any, connection: Any) -> Sql:
        sql, parameters = self.process_lhs(compiler, connection)
        return sql, list(parameters)


@CharField.register_lookup
class HasWords(_NameLookup):
    """Each word of the text is a part of the name; of a short word, the beginning of a word."""

    lookup_name = "has_words"

    def as_sql(self, compiler: Any, connection: Any) -> Sql:
        column, parameters = self.column(compiler, connection)
        folded_name = folded_sql(column)
        patterns = [
            f"%{word}%" if len(word) >= SHORTEST_PART else f"% {word}%" for word in self.words()
        ]
        return _joined(" AND ", f"{folded_name} LIKE %s", parameters, patterns)

    def as_sqlite(self, compiler: Any, connection: Any) -> Sql:
        column, parameters = self.column(compiler, connection)
        patterns = [glob_of(word) for word in self.words()]
        return _joined(" AND ", f"(' ' || {column}) GLOB %s", parameters, patterns)

    def words(self) -> list[str]:
        """Raises EmptyResultSet if the text has no word, or more than any name has."""
        text = str(self.rhs)
        words = list(dict.fromkeys(words_of(text[:_LONGEST_TEXT])))
        if not words or len(text) > _LONGEST_TEXT:
            raise EmptyResultSet
        return words


@CharField.register_lookup
class IsSimilarTo(_NameLookup):
    """Candidates for a similar name; `taxpayers.names.similarity` says how similar each is."""

    lookup_name = "is_similar_to"

    def as_sql(self, compiler: Any, connection: Any) -> Sql:
        column, parameters = self.column(compiler, connection)
        # The operator of pg_trgm: as similar as pg_trgm.word_similarity_threshold says.
        return f"{folded_sql(column)} %%> %s", [
            *parameters,
            " ".join(distinctive_words(str(self.rhs))),
        ]

    def as_sqlite(self, compiler: Any, connection: Any) -> Sql:
        column, parameters = self.column(compiler, connection)
        words = sorted(distinctive_words(str(self.rhs)), key=len)[-_BEST_CANDIDATES:]
        if not words:
            raise EmptyResultSet
        patterns = [glob_of(word) for word in words]
        return _joined(" OR ", f"(' ' || {column}) GLOB %s", parameters, patterns)


def _joined(operator: str, condition: str, parameters: list[Any], patterns: list[str]) -> Sql:
    """The condition once for each pattern."""
    sql = operator.join([condition] * len(patterns))
    return f"({sql})", [value for pattern in patterns for value in (*parameters, pattern)]
