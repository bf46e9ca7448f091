"""A Django view that does nothing, the baseline of every ratio; and one that reads the form."""

from bench.clients import Population
from bench.peers import Candidate
from bench.servers import Server
from bench.session import Session
from bench.token_requests import TOKEN, taxpayer_login

_APPLICATION = "bench.peers.bare_view_app:application"


def _start(session: Session, population: Population) -> Server:
    return session.start_granian("bare_view", _APPLICATION)


def _start_form_reader(session: Session, population: Population) -> Server:
    return session.start_granian("form_reader", _APPLICATION, READ_FORM="1")


BARE_VIEW = Candidate("bare Django view", _start, taxpayer_login, TOKEN, (16, 64))
FORM_READER = Candidate("the same, reading the form", _start_form_reader, taxpayer_login, TOKEN)
