"""The ASGI application of a server process."""

import gc

from identity.wsgi import application as django_application  # first, because it sets Django up

# isort: split
from django.conf import settings

from identity.doors import Doors
from identity.server.overload import LongBodiesOf, no_long_bodies
from tokens.operations.asgi import TokenEndpoint

login: TokenEndpoint
if settings.OTEL_EXPORTER_OTLP_ENDPOINT and settings.SERVE != "staff":
    # Only here, because its libraries are not installed everywhere, and take time to import.
    from identity.traces.endpoint import TracedEndpoint

    login = TracedEndpoint()
else:
    login = TokenEndpoint()
long_bodies: LongBodiesOf = no_long_bodies
if settings.SERVE != "login":
    # Only here: a process that answers logins starts without the REST framework.
    from identity.uploads import long_bodies
application = Doors(login, django_application, long_bodies)

# What is loaded by now stays: the garbage collector need not look at it again, and the workers that
# are forked from this process go on sharing its memory pages.
gc.collect()
gc.freeze()
# Few objects of a login are part of a cycle: looking for them more rarely costs little memory.
gc.set_threshold(20_000, 50, 50)
