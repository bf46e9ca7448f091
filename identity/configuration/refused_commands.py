"""Commands of Django and its libraries that no live service survives unharmed, and why.

`dbshell` and `shell` stay: a person who can run them reaches the database without them as well, and
an incident may need them. `sqlflush` and the others that only print statements change nothing.
"""

_NO_HISTORY = "it would change records without a history"
_FOR_DEVELOPERS = "it is a server for developers, without the limits of the real one"

REFUSED_IN_LIVE = {
    "flush": "it would delete every record",
    "loaddata": _NO_HISTORY,
    "remove_stale_contenttypes": _NO_HISTORY,
    "account_unsetmultipleprimaryemails": _NO_HISTORY,
    "createapplication": f"{_NO_HISTORY}. Use issue_credentials",
    "cleartokens": f"{_NO_HISTORY}. Use prune_logins",
    "clearcimdapplications": _NO_HISTORY,
    "diffsettings": "it would print every secret of the service. Use settings",
    "dumpdata": "it would print sessions and hashes of passwords. Use pg_dump",
    "runserver": _FOR_DEVELOPERS,
    "testserver": _FOR_DEVELOPERS,
}
