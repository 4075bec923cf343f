"""The rules of the switches by the settings in force."""

from __future__ import annotations

from collections.abc import Mapping

from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.model import Snapshot, Switch
from controller.process.startup import control_endpoints
from controller.rules.compiler import compile_rules
from controller.rules.fabric import Link, as_links
from controller.rules.pipeline import Endpoint
from controller.rules.rule import Rule


class RuleCompiler:
    """Compiles rules as ``compile_rules`` does, with the mode, the links and the controller's own sockets of the
    settings that are in force at that moment."""

    def __init__(self, current: CurrentSettings) -> None:
        self._current = current
        self._latest: tuple[Config, tuple[Link, ...], tuple[Endpoint, ...]] | None = None

    def __call__(self, snapshot: Snapshot, classes: Mapping[str, int]) -> frozenset[Rule]:
        """Returns all rules that the switches of ``snapshot`` should hold."""
        config, links, control = self._values()
        return compile_rules(
            snapshot,
            classes,
            mode=config.enforcement.mode,
            forwarding=config.forwarding,
            links=links,
            control=control,
            announcements=config.enrolment is not None,
        )

    def base(self, switch: Switch) -> frozenset[Rule]:
        """Returns the rules that a switch needs before there is a plan."""
        hosts, config = self._current.hosts, self._current.config
        known = Snapshot(
            0.0,
            hosts,
            (),
            config.classes,
            switches=(switch,),
            code_points=config.code_points,
            is_lossless=config.lossless is not None,
        )
        return self(known, {})

    def _values(self) -> tuple[Config, tuple[Link, ...], tuple[Endpoint, ...]]:
        latest, config = self._latest, self._current.config
        if latest is None or latest[0] is not config:
            latest = self._latest = (config, as_links(config.links), control_endpoints(config))
        return latest
