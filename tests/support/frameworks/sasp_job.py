"""A parameter server in a thread, and its only worker."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

import sasp
from sasp.server.server import Server, listen


@contextlib.contextmanager
def joined(
    model: nn.Module, inner: torch.optim.Optimizer, scheme: str, **options: Any
) -> Iterator[tuple[nn.Module, torch.optim.Optimizer]]:
    """The only worker of a server."""
    with listen("127.0.0.1", 0, 1) as listener:
        job = Server(listener, 1, sasp.parse(scheme), token="", patience=20)
        thread = threading.Thread(target=job.run)
        thread.start()
        try:
            model, optimizer = sasp.join(model, inner, server=listener.getsockname(), rank=0, scheme=scheme, **options)
            with optimizer:
                yield model, optimizer
        finally:
            optimizer.close()
            thread.join(20)
        assert not thread.is_alive()
