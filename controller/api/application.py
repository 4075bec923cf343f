"""The API as a part of Ryu's WSGI application."""

from __future__ import annotations

from typing import Any

from ryu.app.wsgi import ControllerBase, WSGIApplication

from controller.api.dispatch import Api
from controller.api.routes import MONITORING
from controller.api.services import Services
from controller.console.static import static_files


def register(wsgi: WSGIApplication, services: Services) -> None:
    """Answer every path of ``wsgi`` that is not registered yet."""
    static_files()  # read now: files of a later version would not fit together with these
    api = Api(services)

    class Everything(ControllerBase):
        """Handles all paths, because Ryu's own mapper has no problem documents."""

        def answer(self, _request: Any, **_parts: str) -> Any:
            """Return the WSGI application that answers the request."""
            return api

    # Not ".*", because a path may contain a line feed.
    anything = {"path": r"[\s\S]*"}
    wsgi.mapper.connect("api", "/{path}", controller=Everything, action="answer", requirements=anything)


def monitoring(services: Services) -> Api:
    """Returns the WSGI application of the calls for monitoring, which needs no token."""
    return Api(services, MONITORING, is_public=True)
