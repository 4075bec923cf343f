"""The REST API, version 1: routes, authentication, errors, metrics.

``register`` puts the API into Ryu's WSGI application, ``ApiServer`` serves that; the app calls both.
"""

from __future__ import annotations

from typing import Any

from ryu.app.wsgi import ControllerBase, WSGIApplication

from controller.api.dispatch import Api
from controller.api.server import ApiServer, ServerError
from controller.api.services import Services

__all__ = ["ApiServer", "ServerError", "Services", "register"]


def register(wsgi: WSGIApplication, services: Services) -> None:
    """Answer every path of ``wsgi`` that nobody else has registered before."""
    api = Api(services)

    class Everything(ControllerBase):
        """All paths: Ryu's own mapper knows no problem documents."""

        def answer(self, _request: Any, **_parts: str) -> Any:
            """Hand the request over as plain WSGI."""
            return api

    # Not ".*": a line feed in the path must be matched too.
    anything = {"path": r"[\s\S]*"}
    wsgi.mapper.connect("api", "/{path}", controller=Everything, action="answer", requirements=anything)
