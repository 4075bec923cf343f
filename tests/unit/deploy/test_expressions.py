"""Every expression of the dashboards and the alerts, evaluated by a real Prometheus that asks a real controller.

The controller has a real switch, whose datapath is in memory, and all of them speak TLS. Prometheus's settings are
those of ``deploy/prometheus/scrape.yaml``.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from evaluation.bench.support.api_client import OPERATOR
from evaluation.bench.support.openflow.openvswitch_process import DPID, OpenVSwitch
from evaluation.bench.support.waiting import wait_until
from tests.support.controller.api.cases import batch, spec
from tests.support.controller.api.samples import Samples
from tests.support.controller.tls.tls_yard import TlsYard
from tests.support.deploy.dashboards import expressions
from tests.support.deploy.prometheus import Prometheus, PrometheusError
from tests.support.paths import ROOT

DEPLOYED = ROOT / "deploy" / "prometheus"
ALERTS: dict[str, str] = {
    rule["alert"]: rule["expr"]
    for group in yaml.safe_load((DEPLOYED / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
}
HOSTS = [{"name": f"h{n}", "address": f"10.0.0.{n}", "switch": DPID, "port": n} for n in (1, 2)]
INTERVAL = "8s"
_SELECTOR = re.compile(r"\b(?:up|(?:trainyard|process|python)_\w+)(?:\{[^}]*\})?")


class Lab:
    """The controller, and the Prometheus that asks it."""

    def __init__(self, yard: TlsYard, prometheus: Prometheus) -> None:
        self.yard = yard
        self.prometheus = prometheus


def scrape_settings(yard: TlsYard, folder: Path) -> dict[str, Any]:
    """The example's settings with the places of this test."""
    settings: dict[str, Any] = yaml.safe_load((DEPLOYED / "scrape.yaml").read_text())
    settings["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    settings["rule_files"] = [str(DEPLOYED / "alerts.yaml")]
    (asked,) = settings["scrape_configs"]
    token = folder / "token"
    token.write_text(f"{OPERATOR}\n")
    asked["authorization"]["credentials_file"] = str(token)
    asked["tls_config"]["ca_file"] = str(yard.certificates.folder.authority_of("controller"))
    asked["static_configs"] = [{"targets": [f"127.0.0.1:{yard.port}"]}]
    return settings


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("expressions")
    # The host tells of its interfaces once, which is known as long as its lease runs.
    yard = TlsYard(folder, scheme="https", hosts=HOSTS, lease_seconds=3600)
    own = yard.certificates.for_switches.public.certificate
    yard.settings["api"] |= {"tls_certificate": str(own), "tls_key": str(own.with_suffix(".key"))}
    yard.write()
    authority = yard.certificates.folder.authority_of("controller")
    yard.session.verify = str(authority)
    yard.start(verify=str(authority))
    try:
        with OpenVSwitch(folder / "ovs") as switch, Prometheus(folder, scrape_settings(yard, folder)) as prometheus:
            switch.set_ssl(*yard.certificates.files("good"), authority)
            switch.connect(f"ssl:127.0.0.1:{yard.openflow_port}")
            for name, port in (("a", 5000), ("b", 5001)):
                assert yard.call("PUT", f"/v1/jobs/{name}", spec(port)).ok
            for iteration in range(1, 4):
                point = {"iteration": iteration, "time": time.time(), "metric": 0.1 * iteration}
                assert yard.call("POST", "/v1/hosts/h1/reports", batch({"job": "a", "points": [point]})).ok
            seen = {"interface": "eth0", "kind": "network", "sent": 1e9, "unseen_sent": 0.0}
            assert yard.call("POST", "/v1/hosts/h1/reports", batch(interfaces=[seen])).ok
            wait_until(lambda: yard.call("GET", "/readyz").ok, what="readiness")
            name = "count_over_time(trainyard_port_class_bytes_total[1m])"
            wait_until(lambda: [each for each in prometheus.query(name) if float(each["value"][1]) >= 4], every=0.2)
            yield Lab(yard, prometheus)
    finally:
        yard.stop()


@pytest.mark.parametrize(("where", "expression"), [pytest.param(*each, id=each[0]) for each in expressions(INTERVAL)])
def test_a_panel_has_samples(lab: Lab, where: str, expression: str) -> None:
    assert lab.prometheus.query(expression), f"{where}: {expression}"


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_looks_at_series_that_exist(lab: Lab, alert: str) -> None:
    lab.prometheus.query(ALERTS[alert])
    selectors = _SELECTOR.findall(ALERTS[alert])
    assert selectors
    for selector in selectors:
        assert lab.prometheus.query(selector), selector


def test_an_expression_that_is_wrong_is_seen(lab: Lab) -> None:
    assert lab.prometheus.query("trainyard_no_such_metric") == []
    with pytest.raises(PrometheusError, match="parse error"):
        lab.prometheus.query("sum(")


def test_no_alert_fires_while_all_is_well(lab: Lab) -> None:
    assert lab.prometheus.rules().keys() == ALERTS.keys()
    wait_until(lambda: all(rule["health"] == "ok" for rule in lab.prometheus.rules().values()), what="evaluations")
    assert [name for name, rule in lab.prometheus.rules().items() if rule["state"] != "inactive"] == []


def test_what_happens_makes_an_alert(lab: Lab) -> None:
    assert lab.yard.call("PATCH", "/v1/settings", {"pause": True}).ok
    wait_until(lambda: lab.prometheus.rules()["TrainyardPaused"]["state"] == "pending", what="the alert")
    assert lab.yard.call("PATCH", "/v1/settings", {"pause": False}).ok


def test_promtool_has_nothing_to_say_about_the_metrics(lab: Lab) -> None:
    text = lab.yard.call("GET", "/metrics").text
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_reference_names_each_metric_with_its_type_labels_and_meaning(lab: Lab) -> None:
    rows = set()
    for family in Samples(lab.yard.call("GET", "/metrics").text).families.values():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({label for sample in family.samples for label in sample.labels} - {"le"})
        words = ", ".join(f"`{label}`" for label in labels)
        rows.add(f"| `{name}` | {family.type} | {words} | {family.documentation.rstrip('.')} |")
    lines = (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines()
    assert {line for line in lines if line.startswith("| `")} == rows


def test_no_label_names_a_job_a_path_or_an_address(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> None:
    values = {
        value
        for family in Samples(lab.yard.call("GET", "/metrics").text).families.values()
        for sample in family.samples
        for value in sample.labels.values()
    }
    assert not values & {"a", "b"}
    assert not [value for value in values if "10.0.0" in value or str(tmp_path_factory.getbasetemp()) in value]
