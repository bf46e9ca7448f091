"""Search by an address or a network: who is limited to it, and what came from it."""

import re
from ipaddress import ip_address, ip_network
from os.path import commonprefix

from django.db import connection
from django.db.models import Model, Q

from taxpayers.facts.source_networks import Network
from taxpayers.models import Credential

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
