"""A controller that speaks TLS with switches, and the certificates that it shows and believes."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from evaluation.bench.support.api_client import Controller
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.tls.yard_certificates import YardCertificates


class TlsYard(Controller):
    """It believes a switch's queues without a test."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.certificates = YardCertificates(folder)
        super().__init__(folder, **({"probe": False, "queues": "existing"} | settings))
        self.settings["openflow"]["tls"] = self.certificates.settings
        self.openflow_port: int = self.settings["openflow"]["port"]
        self.write()

    def renew(self) -> None:
        """Have it read its certificates again, and wait until it has."""
        assert self.process is not None
        before = self.log().count("read again")
        self.process.send_signal(signal.SIGHUP)
        wait_until(lambda: self.log().count("read again") > before, what="the reload")
