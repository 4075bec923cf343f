"""Requests from a loopback address of one's choice, as from another machine."""

from __future__ import annotations

from typing import Any

import requests
from requests.adapters import HTTPAdapter


class _FromAddress(HTTPAdapter):
    def __init__(self, address: str) -> None:
        self._address = address
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, source_address=(self._address, 0), **options)


def ask(address: str, url: str, token: str | None = None, *, method: str = "GET", **options: Any) -> requests.Response:
    """Returns the answer to a request without a body from ``address``, over a connection of its own."""
    with requests.Session() as session:
        session.trust_env = False
        session.mount("http://", _FromAddress(address))
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        return session.request(method, url, headers=headers, timeout=15, **options)
