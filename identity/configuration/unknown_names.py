"""Names in the environment that are no setting, but were probably meant as one. Pure."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from identity.configuration.setting_list import Setting

# The environment is full of the names of others: only long ones are compared, and only near ones.
_SHORTEST, _SIMILARITY = 6, 0.85


def describe_unknown_names(names: Iterable[str], known: Mapping[str, Setting]) -> list[str]:
    """One line for each of `names` that is not known and looks like one that is."""
    lines = (_describe(name, known) for name in sorted(names))
    return [line for line in lines if line]


def _describe(name: str, known: Mapping[str, Setting]) -> str:
    stem = name.removesuffix("_FILE")
    if name in known or (stem in known and known[stem].is_secret):
        return ""
    if stem in known:
        return f"{name} is not read: only secrets can be in a file. Set {stem} instead."
    long = [known_name for known_name in known if len(known_name) >= _SHORTEST]
    if len(stem) < _SHORTEST:
        return ""
    near = get_close_matches(stem, long, n=1, cutoff=_SIMILARITY)
    return f"{name} is not a setting, and is not read. Did you mean {near[0]}?" if near else ""
