"""`count_logins`: what the first page of the staff shows, counted ahead (contract 6)."""

import sys
from datetime import datetime
from typing import Any

from tqdm import tqdm

from taxpayers.management.command import Answer, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from tokens.login_events.hourly_counts import SETTLED_AFTER, count_all


class Command(ServiceCommand):
    help = (
        "Count the logins of past hours for the first page. The page does so itself, little by"
        " little; this is for a busy service, every few minutes. Safe to repeat, and beside logins."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Answer:
        with tqdm(unit=" steps", file=sys.stderr, disable=None) as bar:
            steps = count_all(at, bar.update)
        until = at - SETTLED_AFTER
        return Answer(
            {"steps": steps, "until": until},
            f"Counted are all logins until {format_moment(until)}.",
        )
