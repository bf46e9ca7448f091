"""Better or worse than last week? The same 24 hours of the week before, in a word and a sentence.

What a limit throttled is not compared: it leaves no record, only metrics.
"""

from collections import Counter
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from identity.staff.framework.badges import Tone

ISSUED = ""  # the reason of a login that got a token
_NOTICED_SHARE = 0.005  # of all logins: half a percentage point
_FEW_TOKENS = 0.8  # of last week's tokens

BETTER = gettext_lazy("Better than last week")
WORSE = gettext_lazy("Worse than last week")
SAME = gettext_lazy("About the same as last week")
UNKNOWN = gettext_lazy("There were no logins in these hours last week.")


@dataclass(frozen=True, slots=True)
class Week:
    verdict: Promise
    tone: Tone = "neutral"
    summary: str = ""


def week_of(now: Counter[str], before: Counter[str]) -> Week:
    """The comparison of logins by reason.

    Worse: a larger part is refused, from half a percentage point on, or far fewer get tokens.
    """
    if not before.total():
        return Week(UNKNOWN)
    share, former = _refused_part(now), _refused_part(before)
    text = _("Of all logins, {now} % were refused; {before} % at the same hours last week.")
    summary = text.format(now=f"{100 * share:.1f}", before=f"{100 * former:.1f}")
    if share - former >= _NOTICED_SHARE or now[ISSUED] < _FEW_TOKENS * before[ISSUED]:
        return Week(WORSE, "bad", summary)
    if former - share >= _NOTICED_SHARE:
        return Week(BETTER, "good", summary)
    return Week(SAME, "neutral", summary)


def _refused_part(logins: Counter[str]) -> float:
    return 1 - logins[ISSUED] / logins.total() if logins.total() else 0.0
