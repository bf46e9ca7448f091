"""The panel "Better or worse than last week?": each number with its words and its list."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from identity.staff.logins.filters import fixer_key
from identity.staff.overview.comparison import Compared, Comparison, Trend, Verdict, compare
from identity.staff.overview.traffic import FULL_HOURS, Traffic
from tokens.refusals.table import REFUSALS

_ICONS = {Trend.MORE: "arrow_upward", Trend.FEWER: "arrow_downward", Trend.SAME: "equal"}
_TONES = {
    Verdict.BETTER: "good",
    Verdict.WORSE: "bad",
    Verdict.SAME: "neutral",
    Verdict.UNKNOWN: "neutral",
}
_VERDICTS = {
    Verdict.BETTER: gettext_lazy("Better than last week"),
    Verdict.WORSE: gettext_lazy("Worse than last week"),
    Verdict.SAME: gettext_lazy("About the same as last week"),
    Verdict.UNKNOWN: gettext_lazy("There were no logins in these hours last week."),
}

ListUrl = Callable[..., str]  # the list of logins, with these filters


@dataclass(frozen=True, slots=True)
class Row:
    """One number; the arrow is an icon, `words` say the same."""

    title: str
    compared: Compared
    icon: str
    words: str
    url: str


@dataclass(frozen=True, slots=True)
class Week:
    """The whole panel."""

    verdict: Any
    tone: str
    summary: str
    rows: list[Row]


def week_of(traffic: Traffic, list_url: ListUrl) -> Week | None:
    """The comparison; None while older logins are still being counted."""
    if traffic.lacks_latest:
        return None
    fixed_by = {reason: refusal.fixed_by for reason, refusal in REFUSALS.items()}
    found = compare(traffic.full_hours, traffic.week_ago, fixed_by)
    begin = traffic.full_hours_begin
    hours = {"from": begin.isoformat(), "to": (begin + FULL_HOURS).isoformat()}
    rows = [
        _row(_("Token issued"), found.tokens, list_url(**hours, reason="issued")),
        _row(_("Refused"), found.refusals, list_url(**hours, reason="refused")),
        *(
            _row(
                _("Refused: {who} can fix it").format(who=_(who)) if who else _("Refused: unknown"),
                compared,
                list_url(**hours, fixed_by=fixer_key(who)),
            )
            for who, compared in found.by_fixer
        ),
    ]
    return Week(_VERDICTS[found.verdict], _TONES[found.verdict], _summary(found), rows)


def _row(title: str, compared: Compared, url: str) -> Row:
    return Row(title, compared, _ICONS[compared.trend], _words(compared), url)


def _words(compared: Compared) -> str:
    if compared.trend is Trend.SAME:
        return _("the same")
    number = compared.difference
    if compared.trend is Trend.MORE:
        text = ngettext("{number} more", "{number} more", number)
    else:
        text = ngettext("{number} fewer", "{number} fewer", number)
    words = text.format(number=f"{number:,}")
    return words if compared.percent is None else f"{words} ({compared.percent:,} %)"


def _summary(found: Comparison) -> str:
    if found.verdict is Verdict.UNKNOWN:
        return ""
    return _("Of all logins, {now} % were refused; {before} % at the same hours last week.").format(
        now=f"{100 * found.share_now:.1f}", before=f"{100 * found.share_before:.1f}"
    )
