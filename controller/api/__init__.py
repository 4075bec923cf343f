"""The REST API, version 1: routes, authentication, errors, metrics.

``register`` puts the API into Ryu's WSGI application, and ``ApiServer`` serves that application; the app calls both.
The names are imported at first use, because the process that only parses bodies needs neither Ryu nor eventlet.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from controller.api.application import monitoring, register
    from controller.api.http11.server import ApiServer, ServerError
    from controller.api.services import Services

__all__ = ["ApiServer", "ServerError", "Services", "monitoring", "register"]

_MODULES = {
    "ApiServer": "http11.server",
    "ServerError": "http11.server",
    "Services": "services",
    "monitoring": "application",
    "register": "application",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
