"""The page *As of a date*: asked by an auditor, answered from the history."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from identity.staff.history import as_of_answers
from taxpayers import services
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import Change, SystemUser
from taxpayers.services import Author
from tests.support.factories import SUBMIT, VIEW
from tests.support.staff import page_url, text_of

pytestmark = pytest.mark.django_db
AS_OF = reverse("admin:taxpayers_change_as_of")
DAY = timedelta(days=1)
# Noon of 1 March in Kuala Lumpur.
MARCH = datetime(2026, 3, 1, 4, 0, tzinfo=UTC)
TIN, AGENT = "C1000000001", "C2000000002"


def by(days: float = 0, name: str = "aminah") -> dict[str, Any]:
    """Who makes a change, so many days after noon of 1 March."""
    return {"by": Author(name, "192.0.2.7"), "at": MARCH + days * DAY}


class Story:
    """A taxpayer grants an intermediary two codes on 1 March, and revokes them on 11 March."""

    def __init__(self) -> None:
        self.taxpayer = services.register_taxpayer(
            taxpayer=TaxpayerId(TIN), name="Old Name", **by(-20)
        )
        agent = services.register_taxpayer(taxpayer=TaxpayerId(AGENT), name="Agent", **by(-20))
        self.role = services.register_intermediary(taxpayer=agent, **by(-10))
        self.issued = services.register_system_user(
            reason="a test", taxpayer=agent, name="Hub", **by(-9)
        )
        self.permission = services.grant_permission(
            taxpayer=self.taxpayer, intermediary=self.role, codes=[SUBMIT, VIEW], **by()
        )
        services.revoke_permission(
            permission=self.permission, reason="The contract ended", **by(10, "kumar")
        )
        services.rename_taxpayer(taxpayer=self.taxpayer, name="New Name", reason="merger", **by(12))
        services.block_system_user(system_user=self.user, reason="leaked", **by(15))
        services.unblock_system_user(system_user=self.user, reason="replaced", **by(20))

    @property
    def user(self) -> SystemUser:
        return self.issued.system_user


@pytest.fixture
def story(db: None) -> Story:
    return Story()


def ask(client: Client, about: str, day: str, time: str = "") -> Any:
    return client.get(AS_OF, {"about": about, "day": day, "time": time})


def line_of(response: Any) -> Any:
    """The only intermediary or taxpayer in the answer."""
    context = response.context
    pairs = (
        context["taxpayer"]["acting"]
        if "taxpayer" in context
        else context["system_user"]["represented"]
    )
    (line,) = pairs.lines
    return line


@pytest.mark.parametrize(
    ("day", "time", "codes", "why_not"),
    [
        ("2026-03-01", "11:59", None, None),  # a minute before the permission
        ("2026-03-01", "12:00", (SUBMIT, VIEW), ""),
        ("2026-03-01", "", (SUBMIT, VIEW), ""),  # the end of the day
        ("2026-03-11", "11:59", (SUBMIT, VIEW), ""),
        ("2026-03-11", "12:00", (), "Permission revoked"),
        ("2026-03-17", "", (), "System user blocked"),
        ("2026-03-22", "", (), "Permission revoked"),
    ],
)
def test_who_could_act_for_a_taxpayer_at_a_moment(
    day: str, time: str, codes: Any, why_not: Any, story: Story, auditor: Client
) -> None:
    response = ask(auditor, TIN, day, time)
    page = text_of(response)
    if codes is None:
        assert "It had not granted any permissions by this moment." in page
        return
    line = line_of(response)
    authorization = line.outcome.authorization
    assert (authorization.permissions if authorization else ()) == codes
    assert line.outcome.text == why_not
    assert f"Agent (C2000000002) {'No' if why_not else 'Yes'} {why_not}" in page
    assert ", ".join(codes) in page


def test_the_same_is_shown_from_the_side_of_the_system_user(story: Story, auditor: Client) -> None:
    response = ask(auditor, story.user.client_id, "2026-03-05")
    assert line_of(response).outcome.authorization.permissions == (SUBMIT, VIEW)
    page = text_of(response)
    assert f"It could get a token for its own taxpayer {AGENT}, with InvoicingAPI." in page
    assert "Old Name (C1000000001)" in page  # as it was called then
    assert str(story.issued.secret) in page
    blocked = text_of(ask(auditor, story.user.client_id, "2026-03-17"))
    assert "It could not log in" in blocked
    assert "by aminah · leaked" in blocked
    assert "Old Name ·" in text_of(ask(auditor, TIN, "2026-03-05"))
    assert "New Name ·" in text_of(ask(auditor, TIN, "2026-03-15"))


def test_what_is_asked_from_a_record_and_what_the_history_cannot_know(
    story: Story, auditor: Client, viewer: Client
) -> None:
    page = text_of(ask(auditor, TIN, "2025-01-01"))
    assert "Not known: the history begins on 9 Feb 2026, 12:00 ." in page
    services.register_taxpayer(taxpayer=TaxpayerId("C3000000003"), name="Later", **by(30))
    user = services.register_system_user(
        reason="a test", taxpayer=story.taxpayer, name="Till", **by(30)
    ).system_user
    for about in ("C3000000003", user.client_id):
        page = text_of(ask(auditor, about, "2026-03-05"))
        assert "It was not registered at this moment." in page
    answer = ask(auditor, TIN, f"{timezone.localdate()}")  # today without a time
    assert abs(answer.context["moment"] - timezone.now()) < timedelta(minutes=5)
    form = auditor.get(AS_OF, {"about": TIN}).context["form"]
    assert form.initial == {"about": TIN, "day": timezone.localdate()}
    links = {story.taxpayer: TIN, story.role: AGENT, story.user: story.user.client_id}
    for record, about in links.items():
        assert f"{AS_OF}?about={about}" in auditor.get(page_url(record)).content.decode()
        assert AS_OF not in viewer.get(page_url(record)).content.decode()
    Change.objects.all().delete()
    assert "the history has no records" in text_of(ask(auditor, TIN, "2026-03-05"))


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({"about": "", "day": "2026-03-01"}, "required"),
        ({"about": TIN, "day": ""}, "required"),
        ({"about": TIN, "day": "2999-01-01"}, "Choose a moment of the past."),
        ({"about": TIN, "day": "0001-01-01", "time": "00:00"}, "valid date"),
        ({"about": "C9999999999", "day": "2026-03-01"}, "There is no taxpayer C9999999999."),
        ({"about": "ci_test_x", "day": "2026-03-01"}, "There is no system user"),
        ({"about": "ci_\0", "day": "2026-03-01"}, "Null characters"),
        ({"about": "?", "day": "2026-03-01"}, "is not a valid identifier: the TIN must be"),
        ({"about": TIN, "day": "2026-03-01", "time": "25:00"}, "valid time"),
    ],
)
def test_a_wrong_question_shows_the_error_in_the_form(
    form: dict[str, str], error: str, story: Story, auditor: Client
) -> None:
    response = auditor.get(AS_OF, form)
    assert error in str(response.context["form"].errors)
    assert "answer-title" not in response.content.decode()


def test_an_intermediary_with_many_taxpayers_has_pages(
    story: Story, auditor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(as_of_answers, "PAGE_SIZE", 2)
    for number in range(4):
        row = services.register_taxpayer(
            taxpayer=TaxpayerId(f"C500000000{number}"), name="x", **by(1)
        )
        services.grant_permission(taxpayer=row, intermediary=story.role, codes=[VIEW], **by(1))
    found: list[str] = []
    url = f"{AS_OF}?about={story.user.client_id}&day=2026-03-05&time="
    while url:
        response = auditor.get(url)
        lines = response.context["system_user"]["represented"].lines
        found += [line.pair.taxpayer.tin for line in lines]
        following = response.context["next_url"]
        url = f"{AS_OF}{following}" if following else ""
    assert found == [TIN, *(f"C500000000{number}" for number in range(4))]
    last_page = auditor.get(f"{AS_OF}?about={story.user.client_id}&day=2026-03-05&p=3")
    assert last_page.context["previous_url"].endswith("p=2")
    for page in ("0", "-1", "x", "99999999999999999999", ""):
        form = {"about": story.user.client_id, "day": "2026-03-05", "p": page}
        assert auditor.get(AS_OF, form).context["system_user"]["represented"].page == 1
