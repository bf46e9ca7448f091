"""gunicorn's own lines, as JSON beside those of the service."""

from gunicorn.config import Config
from gunicorn.glogging import Logger


class ServerLog(Logger):
    """Passes everything on to the handlers of `LOGGING`."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        for logger in (self.error_log, self.access_log):
            logger.handlers.clear()
            logger.propagate = True
