"""Search that always uses an index, and pages of a list, also where the table has millions."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address, ip_network
from os.path import commonprefix
from typing import Any

from django.core.paginator import Paginator
from django.db import OperationalError, connection, transaction
from django.db.models import Model, Q, QuerySet
from django.utils.functional import cached_property
from psycopg.errors import QueryCanceled

from taxpayers.facts.source_networks import Network
from taxpayers.models import Credential


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # no subscript at run time
    """Counts up to `max_rows`; further rows are found by search, not by paging."""

    object_list: "QuerySet[Any]"
    max_rows = 1000

    @cached_property
    def count(self) -> int:
        # Without the order: to sort rows that are only counted would read all of them.
        counted = self.object_list.order_by()[: self.max_rows + 1].count()
        self.has_more = counted > self.max_rows
        return min(counted, self.max_rows)


# The paginator shows no more rows; it asks for a more precise search instead.
MAX_FOUND = CappedPaginator.max_rows + 1


# The index finds every part of a name; who searches for parts that many names have would wait long.
SEARCH_SECONDS = 2.0


class TooGeneral(Exception):
    """The search takes too long: it needs another word."""


@contextmanager
def limited_search() -> Iterator[None]:
    """Around the statements of one search. Raises TooGeneral if one of them takes too long."""
    if connection.vendor != "postgresql":  # SQLite has the few rows of a trial
        yield
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout TO {int(SEARCH_SECONDS * 1000)}")
            yield
            # Where this is within a transaction, which goes on.
            cursor.execute("SET LOCAL statement_timeout TO DEFAULT")
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooGeneral from None
        raise


def search_by_index(
    rows: "QuerySet[Any]", conditions: Iterable[Q], *, only_newest: bool = False
) -> "QuerySet[Any]":
    """The rows that match one of the conditions, at most MAX_FOUND for each, or the newest of all.

    Each condition must be answered by one index: in one OR, none would use it. Raises TooGeneral.
    """
    keys: set[Any] = set()
    order = ["-pk"] if only_newest else []
    with limited_search():
        for condition in conditions:
            matching = rows.filter(condition).order_by(*order)
            keys.update(matching.values_list("pk", flat=True)[:MAX_FOUND])
    return rows.filter(pk__in=sorted(keys)[-MAX_FOUND:] if only_newest else keys)


def taxpayer_conditions(term: str, path: str = "") -> list[Q]:
    """Find a taxpayer by TIN, `TIN:ROB`, ROB number or name; `path` leads to it: `taxpayer__`."""
    by_name = Q(**{f"{path}name__has_words": term})
    if " " in term and not _DIGIT.search(term):
        return [by_name]
    number = "".join(term.upper().split())
    tin, _, rob = number.partition(":")
    if rob:
        return [Q(**{f"{path}tin__in": {tin, plain(tin)}, f"{path}rob__startswith": rob}), by_name]
    # Both in one condition: PostgreSQL adds up what two indexes of one table found.
    by_number = Q(**{f"{path}tin__startswith": tin}) | Q(**{f"{path}rob__startswith": tin})
    if plain(tin) != tin:
        by_number |= Q(**{f"{path}tin__startswith": plain(tin)})
    return [by_number, by_name]


_DIGIT = re.compile("[0-9]")


def plain(number: str) -> str:
    """A number without the blanks and dashes by which people group it."""
    return "".join(number.split()).replace("-", "")


_MAX_READ = 10_000  # credentials, the newest ones, whose networks may meet a wide one


def network_in(text: str) -> Network | None:
    """The network that this text is; a single address is a network of one. None: it is none."""
    try:
        return ip_network(text, strict=False) if "%" not in text else None
    except ValueError:
        return None


def text_of(network: Network) -> str:
    """As people write it."""
    return str(network[0]) if network.num_addresses == 1 else str(network)


def limited_to(network: Network) -> Q:
    """System users with a credential that is not revoked, and limited to networks that meet it."""
    ends = str(network[0]), str(network[-1])
    inside = re.escape(commonprefix(ends))  # noqa: RUF071 - these are texts, not paths
    wider = [str(network.supernet(new_prefix=length)) for length in range(network.prefixlen)]
    around = "|".join(f"{re.escape(text)}( |$)" for text in [*wider, str(network)])
    limited = Credential.objects.filter(slot__isnull=False).exclude(allowed_networks="")
    # An index has only these; the pattern finds a few networks more, which are compared here.
    rows = limited.filter(allowed_networks__regex=f"(^| )({inside}|{around})").order_by("-pk")
    keys = rows.values_list("system_user", "allowed_networks")[:_MAX_READ]
    return Q(pk__in={key for key, texts in keys if _meets(texts, network)})


def _meets(texts: str, network: Network) -> bool:
    return any(ip_network(text).overlaps(network) for text in texts.split())


def came_from(network: Network, model: type[Model], column: str) -> Q:
    """The rows with one of its addresses in this column, by the index of addresses."""
    if network.num_addresses == 1:
        return Q(**{column: str(network[0])})
    if connection.vendor == "postgresql":
        return Q(**{f"{column}__range": (str(network[0]), str(network[-1]))})
    # SQLite has addresses as texts, and the few rows of a trial.
    addresses = model._default_manager.order_by().values_list(column, flat=True).distinct()
    return Q(**{f"{column}__in": [one for one in addresses if one and ip_address(one) in network]})
