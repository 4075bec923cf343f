"""What switches get before there is a plan, by the settings in force."""

from __future__ import annotations

from controller.code_points import CLASS_SELECTORS
from controller.config.config import Config
from controller.config.current import CurrentSettings
from controller.model import Switch
from controller.process.compiling import RuleCompiler
from controller.process.startup import dataplane_settings
from controller.rules.compiler import SetClass

HOSTS = [{"name": "h1", "address": "10.0.0.1", "switch": 1, "port": 7}]


def test_a_switch_without_a_plan_serves_the_dscps_of_the_settings() -> None:
    config = Config.model_validate({"hosts": HOSTS, "mode": "marked", "classes": 2, "dscp": "class-selectors"})
    rules = RuleCompiler(CurrentSettings(config)).base(Switch(1))
    believed = {(rule.match.in_port, rule.match.ip_dscp): rule.actions for rule in rules if rule.match.in_port}
    assert believed == {(7, 56): (SetClass(0),), (7, 48): (SetClass(1),)}


def test_queues_are_proven_with_the_dscps_of_the_settings() -> None:
    config = Config.model_validate({"classes": 2, "dscp": "class-selectors"})
    assert dataplane_settings(config, {}).code_points == CLASS_SELECTORS.first(2)
