"""`count_logins`: counts ahead what the overview of the staff pages shows (contract 6)."""

import sys
from datetime import datetime
from typing import Any

from tqdm import tqdm

from taxpayers.management.command import Output, ServiceCommand
from taxpayers.moments import format_moment
from taxpayers.services import Author
from tokens.login_events.counting import SETTLED_AFTER, count_all, note_first_uses


class Command(ServiceCommand):
    help = (
        "Count the logins of past hours for the overview, and record which permissions were used"
        " for the first time. Run this every few minutes. Safe to repeat, and while logins go on."
    )

    def act(self, options: dict[str, Any], *, by: Author, at: datetime) -> Output:
        with tqdm(unit=" steps", file=sys.stderr, disable=None) as bar:
            steps = count_all(at, bar.update)
        first_uses = note_first_uses(by=by, at=at)
        until = at - SETTLED_AFTER
        return Output(
            {"steps": steps, "first_uses": first_uses, "until": until},
            f"All logins until {format_moment(until)} are counted.",
        )
