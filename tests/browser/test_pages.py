"""Each page shows what the API says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from evaluation.bench.support.api_client import Controller
from tests.browser.conftest import Visits
from tests.support.browser.cluster import PROBLEM, TRIALS, Cluster
from tests.support.browser.pages import PAGES, fact, part, rows
from tests.support.controller.api_cases import spec


@pytest.mark.parametrize("address", PAGES)
def test_each_page_has_its_heading_title_and_place_in_the_menu(visits: Visits, cluster: Cluster, address: str) -> None:
    page = visits(cluster).go(address, PAGES[address])
    expect(page).to_have_title(f"{PAGES[address]} – Trainyard")
    in_menu = {"jobs/vision-large": "Jobs"}.get(address, PAGES[address])
    expect(page.get_by_role("link", name=in_menu, exact=True)).to_have_attribute("aria-current", "page")
    expect(page.locator("nav [aria-current]")).to_have_count(1)


def test_the_overview_says_what_is_in_force_busy_and_wrong(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("", "Overview")
    in_force = part(page, "In force")
    expect(fact(in_force, "Policy")).to_contain_text(re.compile(r"sincronia.*since \d\d:\d\d:\d\d"))
    expect(fact(in_force, "State")).to_contain_text("the order is enforced")
    plan = cluster.plan()
    expect(fact(in_force, "Jobs")).to_contain_text(str(len(plan["classes"])))
    over = plan["objective_seconds"] / plan["lower_bound_seconds"] - 1
    shown = fact(in_force, "Above the lower bound").locator("dd").first.inner_text()
    assert float(shown.removesuffix(" %")) == pytest.approx(100 * over, abs=0.051)
    expect(in_force).to_contain_text(
        re.compile("Jobs meet at 4 ports. Most meet at h[12] (in|e)gress: vision-small, speech-night and vision-large.")
    )
    expect(part(page, "Problems")).to_contain_text(PROBLEM)
    order = [job for band in plan["order"] for job in band]
    expect(part(page, "Jobs in their order").get_by_role("link")).to_have_text(order)
    expect(part(page, "Busiest ports").get_by_role("listitem").first).to_contain_text(
        re.compile(r"s1 port \d → h\d.* % of 1 Gbit/s")
    )


def test_a_job_that_agents_have_found_says_how(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster)
    try:
        for host, told in (("h2", {"is_first": True, "hosts": ["h1", "h2", "h9"]}), ("h1", {})):
            assert cluster.call("PUT", f"/v1/jobs/slurm-7/parts/{host}", {"launcher": "slurm"} | told).ok
        page = visit.go("jobs/slurm-7", "Job slurm-7")
        expect(part(page, "State")).to_contain_text("Found by slurm on h2 (rank 0), h1. slurm also names h9: no agent")
        assert cluster.call("DELETE", "/v1/jobs/slurm-7/parts/h2").ok
        expect(part(page, "State")).to_contain_text("Found by slurm on h1.")
        page = visit.go("jobs/vision-large", "Job vision-large")
        expect(part(page, "State")).not_to_contain_text("Found by")
    finally:
        cluster.call("DELETE", "/v1/jobs/slurm-7")


def test_where_nothing_enforces_the_order_the_pages_say_so(visits: Visits, tmp_path: Path) -> None:
    controller = Controller(tmp_path, token=False).start()
    try:
        controller.call("PUT", "/v1/jobs/a", spec(5000))
        visit = visits(controller)
        page = visit.go("", "Overview")
        state = fact(part(page, "In force"), "State")
        expect(state).to_contain_text("nothing is enforced")
        expect(state).to_contain_text("no switch has connected")
        visit.go("jobs/a", "Job a")
        expect(part(page, "Why it waits")).to_contain_text("Nothing is enforced now: no switch has connected.")
    finally:
        controller.stop()


def test_the_jobs_are_sorted_and_filtered(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("jobs", "Jobs")
    classes = cluster.plan()["classes"]
    names = rows(page, "jobs").get_by_role("link")
    expect(names).to_have_text(sorted(classes, key=classes.__getitem__))  # by class at first
    page.get_by_role("button", name="Job", exact=True).click()
    expect(page.get_by_role("columnheader", name="Job")).to_have_attribute("aria-sort", "ascending")
    expect(names).to_have_text(sorted(classes))
    page.get_by_role("button", name="Job", exact=True).click()
    expect(names).to_have_text(sorted(classes, reverse=True))
    page.get_by_role("searchbox", name="filter jobs").fill("ann h2")
    expect(rows(page, "jobs")).to_have_count(2)
    expect(page.get_by_role("status").filter(has_text="of")).to_have_text(f"2 of {len(classes)}")
    expect(rows(page, "jobs").first).to_contain_text("vision-small0runningresnet50ann")
    page.get_by_role("combobox", name="which jobs").select_option("ended and lost")
    expect(rows(page, "jobs")).to_have_count(0)


def test_a_job_says_why_it_waits_at_which_port_and_for_how_long(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("jobs/vision-large", "Job vision-large")
    explained: Any = cluster.call("GET", "/v1/jobs/vision-large/explain").json()
    worst = explained["ports"][0]
    assert worst["before_count"] == 2
    why = part(page, "Why it waits")
    before = " and ".join(one["job"] for one in worst["before"])
    expect(why.get_by_role("status")).to_contain_text(f"vision-large waits at {worst['port']} for {before}, which need")
    expect(why.get_by_role("status")).to_contain_text("needs 1.9 s there")
    expect(why).to_contain_text(f"sincronia says: {explained['reason']}")
    assert [row.split("\n")[0].split("\t")[0] for row in why.locator("tbody tr").all_inner_texts()] == [
        port["port"] for port in explained["ports"]
    ]
    known = part(page, "What is known of it")
    expect(fact(known, "Family")).to_contain_text("imagenet")
    expect(fact(known, "Iterations left")).to_contain_text("47")
    why.get_by_role("link", name="speech-night").first.click()
    expect(page.get_by_role("heading", name="Job speech-night", level=1)).to_be_visible()
    expect(part(page, "Why it waits").get_by_role("status")).to_contain_text("for vision-small, which needs")


@pytest.mark.parametrize(
    ("job", "said"),
    [
        ("lonely", "lonely does not wait: no other job is before it, or beside it, at its ports."),
        ("vision-small", "vision-small does not wait"),
        ("nobody", "There is no job nobody now."),
    ],
)
def test_a_job_that_does_not_wait(visits: Visits, cluster: Cluster, job: str, said: str) -> None:
    page = visits(cluster).go(f"jobs/{job}", f"Job {job}")
    expect(page.locator("main")).to_contain_text(said)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("Weight", "100", "With weight 100: 6 → 3 It would wait less: 0 s in the place of 1.5 s are before it"),
        ("Policy", "fair", "With policy fair: 6 → 0 It would wait less: 0 s in the place of 1.5 s are before it"),
    ],
)
def test_what_would_help_is_tried_and_not_applied(
    visits: Visits, cluster: Cluster, field: str, value: str, said: str
) -> None:
    epoch = cluster.plan()["epoch"]
    page = visits(cluster).go("jobs/vision-large", "Job vision-large")
    helps = part(page, "What would help")
    control = helps.get_by_label(field)
    if field == "Policy":
        control.select_option(value)
    else:
        control.fill(value)
    helps.get_by_role("button", name="Show what it would do").click()
    expect(helps.get_by_role("status")).to_contain_text(said)
    assert cluster.plan()["epoch"] == epoch


def test_a_change_that_cannot_be_tried_is_refused_with_the_reason(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster, expected=[r"status of 422 .*/explain\?weight=heavy"])
    helps = part(visit.go("jobs/vision-large", "Job vision-large"), "What would help")
    helps.get_by_label("Weight").fill("heavy")
    helps.get_by_role("button", name="Show what it would do").click()
    expect(helps.get_by_role("alert")).to_contain_text("'heavy' is no number")


def test_the_plan_of_another_policy_is_beside_it_with_moves_marked(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("plan", "Plan")
    in_force = part(page, "In force: sincronia")
    order = cluster.plan()["order"]
    expect(in_force.locator("ol a")).to_have_text([job for band in order for job in band])
    page.get_by_label("Compare with the plan of").select_option("fifo")
    dry_run = part(page, "Dry run, not applied: fifo")
    there: Any = cluster.call("GET", "/v1/plan?policy=fifo").json()
    expect(dry_run.locator("ol a")).to_have_text([job for band in there["order"] for job in band])
    place = {job: number for number, band in enumerate(order) for job in band}
    moved = {job: number - place[job] for number, band in enumerate(there["order"]) for job in band}
    assert {moved["vision-large"] < 0, moved["vision-small"] == 0} == {True}, "else nothing is tested"
    for job, by in moved.items():
        mark = dry_run.locator(".place", has=page.get_by_role("link", name=job, exact=True))
        words = ["↑goes earlier"] if by < 0 else ["↓goes later"] if by > 0 else []
        expect(mark.locator(".mark")).to_have_text(words)
    expect(fact(dry_run, "Moves")).to_contain_text(f"{sum(by != 0 for by in moved.values())} jobs")
    page.get_by_label("Compare with the plan of").select_option("no other policy")
    expect(dry_run).to_have_count(0)


def test_the_trials_of_a_study_are_in_the_order_of_their_metric(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("studies", "Studies")
    expect(part(page, "rung-1")).to_contain_text("3 trials")
    trials = rows(page, "trials of rung-1")
    expect(trials.get_by_role("link")).to_have_text(list(reversed(TRIALS)))
    expect(trials.first).to_contain_text("0.48")


def test_the_network_shows_links_by_class_and_what_its_switch_says(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("network", "Network")
    expect(page.get_by_role("img", name="3 hosts, 1 switch, 3 links")).to_be_visible()
    switch = part(page, "Switch s1")
    expect(fact(switch, "State")).to_contain_text("ready")
    expect(fact(switch, "Queues")).to_contain_text("not probed")
    expect(rows(page, "links")).to_have_count(6)
    counted = page.get_by_role("row", name="s1 port 1 → h1")
    expect(counted.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"Mbit/s, \d+ %$"))
    assert counted.locator(".load-part").count() >= 4, "its classes are told apart"
    expect(page.get_by_role("row", name="h1 → s1 port 1")).to_contain_text("not counted")


def test_the_hosts_say_whether_they_report_and_what_runs_there(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("hosts", "Hosts")
    expect(rows(page, "hosts")).to_have_count(3)
    expect(page.get_by_role("row", name="h1 10.0.0.1")).to_contain_text("reports")
    silent = page.get_by_role("row", name="h3 10.0.0.3")
    expect(silent).to_contain_text("silent")
    expect(silent.get_by_role("link", name="lonely")).to_have_attribute("href", "#/jobs/lonely")
    expect(silent.get_by_role("img", name=re.compile("^h3: .*%$"))).to_be_visible()


def test_the_audit_says_who_has_changed_what(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("events", "Events and audit")
    record = page.get_by_role("row").filter(has_text="PUT /v1/jobs/lonely")
    expect(record).to_contain_text("night (operator)127.0.0.1")
    record.get_by_text("before and after").click()
    expect(record.locator("pre")).to_be_visible()
    expect(record.locator("pre")).to_contain_text('"bytes": 1000000')


def test_the_settings_in_force_are_shown(visits: Visits, cluster: Cluster) -> None:
    in_force = part(visits(cluster).go("settings", "Settings"), "In force")
    expect(fact(in_force, "Policy")).to_contain_text("sincronia")
    expect(fact(in_force, "Period")).to_contain_text("1 s")
    expect(fact(in_force, "Enforcement")).to_contain_text("at: switch, host")
