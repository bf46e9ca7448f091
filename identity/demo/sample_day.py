"""Sample data that looks like a real day at the tax authority (contract 6, `demo`)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

from django.db import transaction
from django.utils import timezone

from identity.demo.sample_logins import SampleClient, make_logins, set_last_used
from taxpayers import services
from taxpayers.evidence import on_paper
from taxpayers.identifiers import TaxpayerId
from taxpayers.models import SystemUser, Taxpayer
from taxpayers.rules import RegistryReason
from tokens.keys.store import read_key_ring
from tokens.models import LoginEvent

_REGISTRAR = services.Author("aminah", "10.20.0.14")
_SECURITY = services.Author("wei.ming", "10.20.0.31")
_FIRST = TaxpayerId("C2581234010")
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
_BLOCKED, _REVOKED = 20 * _HOUR, 2.4 * _HOUR  # so long ago


@dataclass(frozen=True, slots=True)
class _Company:
    """A taxpayer with one ERP: its secret and its system user expire in so many days from now."""

    tin: str
    name: str
    erp: str
    secret_ends: float = 210
    user_ends: float | None = None
    rob: str = ""
    works_at_night: bool = False


_COMPANIES = (
    _Company(_FIRST.tin, "Kedai Runcit Seri Wangsa Sdn Bhd", "AutoCount"),
    _Company("C2581234020", "Bintang Logistics Sdn Bhd", "SAP S/4HANA", works_at_night=True),
    _Company("C2581234030", "Teh Tarik Holdings Bhd", "Oracle NetSuite", secret_ends=3),
    _Company("C2581234040", "Perak Tin & Rubber Sdn Bhd", "SQL Account", user_ends=5),
    _Company("C2581234050", "Kinabalu Outdoor Sdn Bhd", "Odoo 18", 12, works_at_night=True),
    _Company("C2581234060", "Selangor Semiconductor Sdn Bhd", "SAP ECC", works_at_night=True),
    _Company("C2581234070", "Nasi Lemak Express Bhd", "Xero bridge", -0.15, works_at_night=True),
    _Company("C2581234080", "Lim & Daughters Hardware", "UBS", rob="202301045678", secret_ends=25),
    _Company("C2581234090", "Penang Bridge Motors Sdn Bhd", "Dynamics 365", user_ends=20),
    _Company("C2581234100", "Sarawak Timber Export Sdn Bhd", "Infor LN", secret_ends=55),
    _Company("C2581234110", "Melaka Heritage Hotels Bhd", "Opera PMS", works_at_night=True),
    _Company(
        "C2581234120", "Johor Palm Oil Mills Bhd", "SAP S/4HANA", secret_ends=80, user_ends=70
    ),
    _Company("C2581234130", "Cyberjaya Cloud Sdn Bhd", "in-house billing", works_at_night=True),
    _Company("C2581234140", "Klinik Keluarga Ampang", "MedicERP"),
    _Company("C2581234150", "Langkawi Ferry Lines Sdn Bhd", "Sage 300", secret_ends=6),
    _Company("C2581234160", "Gombak Printing Sdn Bhd", "AutoCount", 210, -2, works_at_night=True),
)
_INTERMEDIARIES = (
    _Company("C2590001010", "Prisma Tax Agents Plt", "Prisma e-Invoice hub", works_at_night=True),
    _Company("C2590001020", "Suria Accounting Services Sdn Bhd", "Suria Connect"),
)


# Every second company has granted a permission, which ends in so many days; None: it has no end.
_GRANTS_END = (4, None, 18, 60, None, 75, None, None)
_BLOCKED_ONE, _REVOKED_GRANT, _OVER_THE_LIMIT, _TWO_SECRETS = 4, 4, 12, 9


@transaction.atomic
def make_sample_day(at: datetime) -> bool:
    """Companies, intermediaries, a month of logins, changes by staff; False if they exist."""
    if Taxpayer.objects.filter(tin=_FIRST.tin, rob=_FIRST.rob).exists():
        return False
    kid = read_key_ring(at - 41 * _DAY).signer(at).kid  # the first key is that old
    chance = Random(20)  # noqa: S311 - the same sample on every machine
    own = [_client(company, at) for company in _COMPANIES]
    agents = [_client(company, at) for company in _INTERMEDIARIES]
    services.block_system_user(
        system_user=own[_BLOCKED_ONE].issued.system_user,
        reason="Sends invoices of another company; waiting for the taxpayer's answer",
        by=_SECURITY,
        at=at - _BLOCKED,
    )
    own[_BLOCKED_ONE].refused = RegistryReason.SYSTEM_USER_BLOCKED, at - _BLOCKED
    own[_OVER_THE_LIMIT].exceeds_limit = True
    make_logins([*own, *_on_behalf(own[::2], agents, at)], kid, chance, at)
    _second_secret(own[_TWO_SECRETS].issued, at)
    return True


def _client(company: _Company, at: datetime) -> SampleClient:
    """Its taxpayer and its ERP were registered together, up to a year ago."""
    registered = at - 200 * _DAY
    if company.secret_ends < 100:  # a secret lives for a year
        registered = at - 365 * _DAY + timedelta(days=company.secret_ends)
    number = int(company.tin[-3:-1])  # in office hours, at different times
    registered = timezone.localtime(registered).replace(hour=9 + number % 8, minute=7 * number % 60)
    user_ends = None if company.user_ends is None else at + timedelta(days=company.user_ends)
    secret_ends = at + timedelta(days=company.secret_ends)
    taxpayer = services.register_taxpayer(
        taxpayer=TaxpayerId(company.tin, company.rob),
        name=company.name,
        by=_REGISTRAR,
        at=registered - _DAY,
    )
    issued = services.register_system_user(
        reason="a new ERP system",
        taxpayer=taxpayer,
        name=company.erp,
        expires_at=user_ends,
        credentials_expire_at=secret_ends,
        by=_SECURITY,
        at=registered,
    )
    # The toolkit's field takes the time of the clock, not that of the service.
    SystemUser.objects.filter(pk=issued.system_user.pk).update(created=registered)
    client = SampleClient(issued, company.works_at_night)
    if secret_ends < at:
        client.refused = RegistryReason.SECRET_EXPIRED, secret_ends
    elif user_ends and user_ends < at:
        client.refused = RegistryReason.SYSTEM_USER_EXPIRED, user_ends
    return client


def _on_behalf(
    granting: list[SampleClient], agents: list[SampleClient], at: datetime
) -> list[SampleClient]:
    """Who acts for these companies; some permissions expire soon, and one was revoked."""
    roles = [
        services.register_intermediary(taxpayer=agent.taxpayer, by=_REGISTRAR, at=at - 190 * _DAY)
        for agent in agents
    ]
    clients = []
    for number, (company, days) in enumerate(zip(granting, _GRANTS_END, strict=True)):
        permission = services.grant_permission(
            taxpayer=company.taxpayer,
            intermediary=roles[number % len(roles)],
            codes=("documents:submit", "documents:view"),
            valid_until=None if days is None else at + timedelta(days=days),
            evidence=on_paper(f"F-{1041 + number}"),
            by=_REGISTRAR,
            at=at - 150 * _DAY,
        )
        issued = agents[number % len(agents)].issued
        clients.append(SampleClient(issued, number % 2 == 0, company.taxpayer))
        if number == _REVOKED_GRANT:
            services.revoke_permission(
                permission=permission,
                evidence=on_paper("F-1180"),
                reason="The taxpayer ended the contract; letter of this week",
                by=_REGISTRAR,
                at=at - _REVOKED,
            )
            clients[-1].refused = RegistryReason.PERMISSION_REVOKED, at - _REVOKED
    return clients


def _second_secret(issued: services.IssuedSecret, at: datetime) -> None:
    """A rotation in progress: the new secret is in use, the old one is safe to remove."""
    changed, old = at - 6 * _DAY, issued.secret
    new = services.issue_secret(
        reason="a new ERP system", system_user=issued.system_user, by=_SECURITY, at=changed
    ).secret
    logins = LoginEvent.objects.filter(secret_id=old.pk)
    logins.filter(at__gte=changed).update(secret_id=new.pk)
    for secret in (old, new):
        set_last_used(secret, LoginEvent.objects.filter(secret_id=secret.pk).latest("at").at)
