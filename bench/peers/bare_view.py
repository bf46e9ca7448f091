"""A Django view that does nothing: the baseline of every ratio."""

from bench.clients import Population
from bench.peers import Candidate
from bench.servers import Server
from bench.session import Session
from bench.token_requests import TOKEN, taxpayer_login


def _start(session: Session, population: Population) -> Server:
    return session.start_granian("bare_view", "bench.peers.bare_view_app:application")


BARE_VIEW = Candidate("bare Django view", _start, taxpayer_login, TOKEN, (16, 64))
