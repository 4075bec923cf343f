"""The REST API, version 1: routes, authentication, errors, metrics.

``register`` puts the API into Ryu's WSGI application, ``ApiServer`` serves that; the app calls both. What is here is
loaded when it is asked for: who only parses a body, in a process of its own, needs neither Ryu nor eventlet.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controller.api.application import register
    from controller.api.http11.server import ApiServer, ServerError
    from controller.api.services import Services

__all__ = ["ApiServer", "ServerError", "Services", "register"]

_MODULES = {
    "ApiServer": "http11.server",
    "ServerError": "http11.server",
    "Services": "services",
    "register": "application",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
