"""The alerts, each with series that make it fire and series that do not, evaluated by promtool."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests.support.paths import ROOT

RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
ALERTS: dict[str, dict[str, Any]] = {
    rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]
}
FROM = 'instance="c:8080",job="trainyard"'
OWN = {"instance": "c:8080", "job": "trainyard"}
DAY = 24 * 60


class Case(NamedTuple):
    """Series that let an alert fire ``after`` so many minutes, with ``labels``, and not ``before`` so many.

    With ``quiet`` in the place of ``series`` it does not fire.
    """

    series: dict[str, str]
    quiet: dict[str, str]
    after: int
    before: int = 0
    labels: dict[str, str] = {}  # noqa: RUF012 - a tuple's default that nobody changes


def one(name: str, fires: str, quiet: str, after: int, before: int = 0, **labels: str) -> Case:
    """A case of one series."""
    texts = "".join(f',{label}="{value}"' for label, value in labels.items())
    series = f"{name}{{{FROM}{texts}}}"
    return Case({series: fires}, {series: quiet}, after, before, labels)


def switches(connected: int, ready: int) -> dict[str, str]:
    at = f'{{{FROM},dpid="01"}}'
    return {f"trainyard_switch_connected{at}": f"{connected}x60", f"trainyard_switch_ready{at}": f"{ready}x60"}


def plans(made_at: str) -> dict[str, str]:
    return {
        f"trainyard_plan_timestamp_seconds{{{FROM}}}": made_at,
        f"trainyard_period_seconds{{{FROM}}}": "5x60",
    }


def files(used: int) -> dict[str, str]:
    return {f"process_open_fds{{{FROM}}}": f"{used}x60", f"process_max_fds{{{FROM}}}": "100x60"}


def gaps(started_at: int) -> dict[str, str]:
    """A client misses events in the 50th minute."""
    return {
        f"trainyard_event_gaps_total{{{FROM}}}": "0x49 1x20",
        f"process_start_time_seconds{{{FROM}}}": f"{started_at}x70",
    }


def slow(quick: int) -> dict[str, str]:
    """100 triggers a minute, of which so many are in force within a second."""
    counts = {"1.0": quick, "2.5": 100, "+Inf": 100}
    name = "trainyard_trigger_to_plan_seconds_bucket"
    return {f'{name}{{{FROM},le="{le}"}}': f"0+{count}x60" for le, count in counts.items()}


def tokens(a_minute: int) -> dict[str, str]:
    name = "trainyard_wrong_tokens_total"
    return {f'{name}{{{FROM},proof="{proof}"}}': f"0+{a_minute}x60" for proof in ("token", "slowed")}


CERTIFICATE = "trainyard_certificate_expiry_timestamp_seconds"
CASES: dict[str, Case] = {
    "TrainyardDown": one("up", "1x4 0x20", "1x60", 8, 6),
    "TrainyardNotReady": one("trainyard_ready", "0x60", "1x60", 6, 4),
    "TrainyardPaused": one("trainyard_paused", f"1x{DAY}", f"0x{DAY}", 13 * 60, 11 * 60),
    "TrainyardFilesRunOut": Case(files(81), files(79), 6, 4),
    "TrainyardPlansFail": one("trainyard_plan_failing", "1x60", "0x60", 3, 1),
    "TrainyardPlansOld": Case(plans("0x60"), plans("0+60x60"), 4, 2),
    "TrainyardPlansSlow": Case(slow(98), slow(100), 15, 8),
    "TrainyardGatesNotRenewed": one("trainyard_gate_errors_total", "0+1x60", "3x60", 5, 1),
    "TrainyardSwitchGone": one("trainyard_switch_connected", "0x60", "1x60", 6, 4, dpid="01"),
    "TrainyardSwitchNotReady": Case(switches(1, 0), switches(0, 0), 6, 4, {"dpid": "01"}),
    "TrainyardQueuesNotProven": one("trainyard_switch_unproven_ports", "2x60", "0x60", 6, 4, dpid="01"),
    "TrainyardSwitchChanged": one("trainyard_switch_repairs_total", "0x9 1x20", "1x60", 12, 8, dpid="01"),
    "TrainyardTablesFull": one("trainyard_degraded_to_marked", "1x60", "0x60", 16, 14),
    "TrainyardAgentsSilent": one("trainyard_hosts", "1x60", "0x60", 6, 4, agent="silent"),
    "TrainyardHostsWait": one("trainyard_enrolment_wait_seconds", "0+60x90", "0+30x90", 68, 64),
    "TrainyardHostsMisplaced": one("trainyard_hosts_misplaced", "2x60", "0x60", 6, 4),
    "TrainyardTrafficNotSeen": one(
        "trainyard_interface_unseen", "1x60", "0x60", 16, 14, host="h1", interface="mlx5_0:1"
    ),
    "TrainyardReloadRefused": one("trainyard_settings_refused", "1x60", "0x60", 2, 0),
    "TrainyardSettingsDiffer": one("trainyard_settings_differ", "1x60", "0x60", 16, 14),
    "TrainyardRestartNeeded": one("trainyard_settings_waiting", f"2x{2 * DAY}", f"0x{2 * DAY}", DAY + 1, DAY - 1),
    "TrainyardCertificateExpires": one(
        CERTIFICATE, f"{13 * 86400}x60", f"{15 * 86400}x60", 11, 9, use="api", kind="certificate"
    ),
    "TrainyardCertificateExpired": one(CERTIFICATE, "300x60", "86400x60", 6, 4, use="openflow", kind="revoked"),
    "TrainyardJournalDegraded": one("trainyard_journal_degraded", "1x60", "0x60", 3, 1),
    "TrainyardAuditDegraded": one("trainyard_audit_degraded", "1x60", "0x60", 3, 1),
    "TrainyardAuditRecordsLost": one("trainyard_audit_lost_records_total", "0x9 5x20", "5x60", 12, 8),
    "TrainyardTokensRefused": Case(tokens(6), tokens(4), 20, 2),
    "TrainyardEventsMissed": Case(gaps(0), gaps(48 * 60), 52, 48),
}


def expected(alert: str, labels: dict[str, str]) -> dict[str, Any]:
    """The alert as it fires, with the labels in its texts."""

    def filled(text: str) -> str:
        return re.sub(r"\{\{ \$labels\.(\w+) \}\}", lambda found: (OWN | labels)[found[1]], text)

    rule = ALERTS[alert]
    return {
        "exp_labels": OWN | labels | rule["labels"],
        "exp_annotations": {name: filled(text) for name, text in rule["annotations"].items()},
    }


def run(folder: Path, alert: str, series: dict[str, str], *fires: tuple[int, list[dict[str, Any]]]) -> None:
    """Have promtool evaluate the rules, and compare what fires after so many minutes."""
    tests = [{"eval_time": f"{minute}m", "alertname": alert, "exp_alerts": wanted} for minute, wanted in fires]
    body = {
        "rule_files": [str(RULES)],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": tests,
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(body))
    done = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_fires_when_it_should_and_not_before(alert: str, tmp_path: Path) -> None:
    case = CASES[alert]
    run(tmp_path, alert, case.series, (case.before, []), (case.after, [expected(alert, case.labels)]))


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_does_not_fire_otherwise(alert: str, tmp_path: Path) -> None:
    case = CASES[alert]
    run(tmp_path, alert, case.quiet, (case.after, []))


def test_promtool_finds_nothing_wrong() -> None:
    for command in (
        ["check", "rules", str(RULES)],
        ["check", "config", "--syntax-only", str(RULES.with_name("scrape.yaml"))],
    ):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_says_what_is_wrong_and_what_to_do(alert: str) -> None:
    rule = ALERTS[alert]
    assert rule["labels"]["severity"] in ("critical", "warning")
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert anchor == alert.lower()
    sections = (ROOT / file).read_text().split("\n### ")
    (section,) = [each for each in sections if each.partition("\n")[0] == alert]
    assert len(section.split()) > 15, "what to do is said there"
