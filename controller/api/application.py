"""The API as a part of Ryu's WSGI application."""

from __future__ import annotations

from typing import Any

from ryu.app.wsgi import ControllerBase, WSGIApplication

from controller.api.dispatch import Api
from controller.api.services import Services


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
