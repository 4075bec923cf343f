"""Each page shows what the API says."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from evaluation.bench.support.api_client import Controller
from tests.browser.conftest import Visits
from tests.support.browser.cluster import PROBLEM, TRIALS, Cluster
from tests.support.browser.pages import PAGES, fact, part, rows
from tests.support.browser.visit import WIDE
from tests.support.controller.api.cases import batch, spec

LOAD_IN_WORDS = r"Mbit/s, \d+\s%; class 0 \d+\s%(, class \d+ \d+\s%)+"
"""What a screen reader says of a link whose traffic is counted by class."""

ROOM_BELOW_TEXT = """(bar) => {
  const text = document.createRange();
  text.selectNodeContents(bar.querySelector(".bar-text"));
  const part = bar.querySelector(".load-part");
  const strip = parseFloat(getComputedStyle(part).borderBottomWidth);
  return part.getBoundingClientRect().bottom - strip - text.getBoundingClientRect().bottom;
}"""
"""Returns the pixels between the text of a bar of load and the strip of the classes below it."""


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
    expect(fact(in_force, "Policy")).to_contain_text(re.compile(r"sincronia.*plan \d+, since \d\d:\d\d:\d\d"))
    expect(fact(in_force, "State")).to_contain_text("the order is enforced")
    plan = cluster.plan()
    expect(fact(in_force, "Jobs")).to_contain_text(str(len(plan["classes"])))
    over = plan["objective_seconds"] / plan["lower_bound_seconds"] - 1
    shown = fact(in_force, "From the best order").locator("dd").first.inner_text()
    assert float(shown.removesuffix("\u00a0% at most")) == pytest.approx(100 * over, abs=0.051)
    meetings = in_force.get_by_role("list", name="ports where jobs meet")
    expect(meetings).to_be_hidden()
    in_force.get_by_text("Jobs meet at 4 ports").click()
    expect(meetings.get_by_role("listitem")).to_have_count(4)
    expect(meetings.get_by_role("listitem").first).to_contain_text(
        re.compile(r"h[12] (in|e)gress( \(\d+\s% full\))?: ")
    )
    expect(meetings.get_by_role("link", name="vision-large").first).to_be_visible()
    expect(in_force).to_contain_text(
        re.compile("Jobs meet at 4 ports. Most wait at h[12] (in|e)gress: .*(speech-night|trial-1|vision-large)")
    )
    expect(part(page, "Problems")).to_contain_text(PROBLEM)
    order = [job for band in plan["order"] for job in band]
    in_order = part(page, "Jobs in their order")
    expect(in_order.get_by_role("link")).to_have_text(order)
    large = in_order.get_by_role("listitem").filter(has_text="vision-large")
    expect(large).to_contain_text(re.compile("waits at h[12] (in|e)gress for vision-small and 1 more"))
    expect(part(page, "Busiest ports").get_by_role("listitem").first).to_contain_text(
        re.compile(r"h\d ingress \(s1 port \d\).*\s% of 1\sGbit/s")
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


def test_a_job_may_be_called_as_what_every_object_has(visits: Visits, cluster: Cluster) -> None:
    # The page may ask why the job waits before it hears that it has ended.
    visit = visits(cluster, expected=[r"status of 40[49] .*[/=]constructor"])
    try:
        page = visit.go("jobs/vision-large", "Job vision-large")
        expect(part(page, "Its metric")).to_be_visible()
        assert cluster.call("PUT", "/v1/jobs/constructor", spec(5200)).ok
        for address, heading in {"jobs/constructor": "Job constructor", "plan": "Plan"}.items():
            visit.go(address, heading)
            expect(page.get_by_text("constructor").last).to_be_visible()
        visit.go("jobs/constructor", "Job constructor")
        cluster.report(1, "constructor", ended=True)
        expect(part(page, "It waits no more")).to_contain_text("The job is ended")
        expect(fact(part(page, "State"), "Class")).to_contain_text("–not in the plan")
        expect(fact(part(page, "State"), "State")).to_contain_text(
            re.compile(r"submitted at \d\d:\d\d:\d\d; ended at \d\d:\d\d:\d\d, after ")
        )
    finally:
        cluster.call("DELETE", "/v1/jobs/constructor")


def test_where_nothing_enforces_the_order_the_pages_say_so(visits: Visits, tmp_path: Path) -> None:
    controller = Controller(tmp_path, token=False).start()
    try:
        controller.call("PUT", "/v1/jobs/a", spec(5000))
        visit = visits(controller, expected=["net::ERR_"])  # the controller ends before the visit
        page = visit.go("", "Overview")
        state = fact(part(page, "In force"), "State")
        expect(state).to_contain_text("nothing is enforced")
        expect(state).to_contain_text("no switch has connected")
        visit.go("settings", "Settings")
        expect(fact(part(page, "In force"), "Enforcement")).to_contain_text("on, but not ready")
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
    expect(rows(page, "jobs").first).to_contain_text(re.compile(r"vision-small0.*for nobodyrunning.*resnet50ann"))
    page.get_by_role("combobox", name="which jobs").select_option("ended and lost")
    expect(rows(page, "jobs")).to_have_count(0)
    expect(page.get_by_text("There are none.")).to_be_visible()
    page.get_by_role("combobox", name="which jobs").select_option("all")
    page.get_by_role("searchbox", name="filter jobs").fill("no such job")
    expect(page.get_by_text("None of them fits the filter.")).to_be_visible()


def test_a_job_says_why_it_waits_at_which_port_and_for_how_long(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("jobs/vision-large", "Job vision-large")
    explained: Any = cluster.call("GET", "/v1/jobs/vision-large/explain").json()
    worst = explained["ports"][0]
    assert worst["before_count"] == 2
    why = part(page, "Why it waits")
    before = " and ".join(one["job"] for one in worst["before"])
    expect(why.get_by_role("status")).to_contain_text(f"vision-large waits at {worst['port']} for {before}: ")
    expect(why.get_by_role("status")).to_contain_text("1.5 s at most. ")
    served = "It needs 1.9 s there itself, so all is served after 3.4 s at most."
    expect(why.get_by_role("status")).to_contain_text(served)
    expect(why).to_contain_text("That is how long the port needs for all that these jobs have left.")
    expect(why.get_by_role("status")).to_contain_text(re.compile(r"It runs at [\d,.]+\siterations/(s|min|h) now."))
    expect(why).to_contain_text(
        re.compile(r"h\d (in|e)gress \(what h\d (sends|receives)\)( is \d+\s% full|: no switch counts its traffic)")
    )
    expect(fact(part(page, "State"), "State")).to_contain_text("running, behind 2 jobs")
    expect(fact(part(page, "State"), "Class")).to_contain_text(
        re.compile(r"lower classes go before it; (unchanged since \d\d:\d\d:\d\d|\d+ changes in the last minute)")
    )
    expect(why).to_contain_text(f"sincronia says: {explained['reason']}")
    by_port = part(page, "Before it, by port")
    expect(by_port.get_by_role("rowheader")).to_have_text(
        [re.compile(f"^{port['port']}") for port in explained["ports"]]
    )
    known = part(page, "What is known of it")
    expect(fact(known, "Family")).to_contain_text("imagenet")
    expect(fact(known, "Iterations left")).to_contain_text("47")
    helps = part(page, "What would help").bounding_box()
    assert helps is not None
    assert helps["y"] + helps["height"] < WIDE["height"], "the answer and what would help are on the first screen"
    why.get_by_role("link", name="speech-night").first.click()
    expect(page.get_by_role("heading", name="Job speech-night", level=1)).to_be_visible()
    expect(part(page, "Why it waits").get_by_role("status")).to_contain_text("for vision-small: ")


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
    ("field", "value", "said", "how"),
    [
        (
            "Weight",
            "100",
            "With weight 100: it would wait less, 1.5 s → 0 s at most: nobody is before it or beside it. Served",
            "Write weight: 100 below spec in the job's file, in /etc/trainyard/jobs.d of one of its hosts.",
        ),
        (
            "Policy",
            "fair",
            "With policy fair: no difference: it waits 1.5 s at most: it shares h",
            "Longer would wait: ",
        ),
    ],
)
def test_what_would_help_is_tried_and_not_applied(
    visits: Visits, cluster: Cluster, field: str, value: str, said: str, how: str
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
    outcome = helps.get_by_role("status")
    expect(outcome).to_contain_text(said)
    expect(outcome).to_contain_text(how)
    assert cluster.plan()["epoch"] == epoch


def test_the_usual_weights_are_tried_at_once_of_one_plan(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("jobs/vision-large", "Job vision-large")
    helps = part(page, "What would help")
    helps.get_by_role("button", name="Try weights 2 and 4").click()
    outcome = helps.get_by_role("status")
    expect(outcome).to_contain_text(re.compile(rf"Of plan {cluster.plan()['epoch']}, made at \d\d:\d\d:\d\d"))
    expect(outcome.get_by_role("listitem")).to_have_text(
        [
            re.compile("^As it is .weight 1.: it waits 1.5\\ss at most: 2 jobs go before it"),
            re.compile("^With weight 2: "),
            re.compile("^With weight 4: "),
        ]
    )


def test_all_pages_name_one_port_of_a_job_that_waits(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster)
    explained: Any = cluster.call("GET", "/v1/jobs/vision-large/explain").json()
    said = f"at {explained['ports'][0]['port']} for vision-small and 1 more"
    assert cluster.plan()["waits"]["vision-large"]["port"] == explained["ports"][0]["port"]
    in_order = part(visit.go("", "Overview"), "Jobs in their order").get_by_role("listitem")
    expect(in_order.filter(has_text="vision-large")).to_contain_text(said)
    page = visit.go("jobs", "Jobs")
    expect(page.get_by_role("row").filter(has_text="vision-large")).to_contain_text(said)


def test_a_change_that_cannot_be_tried_is_refused_with_the_reason(visits: Visits, cluster: Cluster) -> None:
    visit = visits(cluster, expected=[r"status of 422 .*/explain\?weights=heavy"])
    helps = part(visit.go("jobs/vision-large", "Job vision-large"), "What would help")
    helps.get_by_label("Weight").fill("heavy")
    helps.get_by_role("button", name="Show what it would do").click()
    expect(helps.get_by_role("alert")).to_contain_text("'heavy' is no number")


def test_the_plan_of_another_policy_is_beside_it_with_moves_marked(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("plan", "Plan")
    in_force = part(page, "In force: sincronia")
    order = cluster.plan()["order"]
    expect(in_force.locator("ol a")).to_have_text([job for band in order for job in band])
    page.get_by_label("Compare with the plan of").select_option("fair")
    dry_run = part(page, "Dry run, not applied: fair")
    there: Any = cluster.call("GET", "/v1/plan?policy=fair").json()
    expect(dry_run.locator("ol a")).to_have_text([job for band in there["order"] for job in band])
    # Jobs that meet share a class under fair sharing, so those that were before others wait for these.
    waits = [
        {job: wait["seconds_before"] + wait["seconds_beside"] for job, wait in plan["waits"].items()}
        for plan in (there, there["in_force"])
    ]
    longer = [job for job, seconds in waits[0].items() if seconds - waits[1][job] > 0.05]
    assert "vision-small" in longer
    assert all(seconds > waits[1][job] - 0.05 for job, seconds in waits[0].items()), "sharing helps nobody at its ports"
    for job in there["classes"]:
        mark = dry_run.locator(".place", has=page.get_by_role("link", name=job, exact=True))
        expect(mark.locator(".mark")).to_have_text(["↓waits longer"] if job in longer else [])
    expect(fact(dry_run, "Moves")).to_contain_text(f"{len(longer)} jobs")
    first = in_force.locator(".place", has=page.get_by_role("link", name="vision-small", exact=True))
    expect(first.locator(".mark")).to_have_text(["↑waits less"])
    page.get_by_label("Compare with the plan of").select_option("no other policy")
    expect(dry_run).to_have_count(0)


def test_a_clock_that_is_set_anew_moves_no_time_of_the_controller(visits: Visits, cluster: Cluster) -> None:
    page = visits(cluster).go("plan", "Plan")
    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 3_600_000; }")
    times = [time.time()]
    page.get_by_label("Compare with the plan of").select_option("fair")
    said = page.get_by_text("The dry run is of")
    expect(said).to_be_visible()
    times.append(time.time())
    assert any(time.strftime("%H:%M:", time.localtime(at)) in said.inner_text() for at in times)


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
    counted = page.get_by_role("row", name="h1 ingress (s1 port 1)")
    expect(counted.get_by_role("img")).to_have_attribute("aria-label", re.compile(LOAD_IN_WORDS))
    assert counted.locator(".load-part").count() >= 4, "its classes are told apart"
    assert counted.locator(".bar").evaluate(ROOM_BELOW_TEXT) >= 0, "the strip of the classes does not cross the text"
    sent = page.get_by_role("row", name="h1 egress (s1 port 1)").get_by_role("img")
    expect(sent).to_have_attribute("aria-label", re.compile(r"Mbit/s, \d+\s%; all classes \d+\s%$"))
    expect(page.get_by_text("Grey: what a host sends to its switch")).to_be_visible()


def test_the_hosts_say_what_is_wrong_there(visits: Visits, cluster: Cluster) -> None:
    traffic = {"interface": "eth0", "kind": "network", "sent": 5e9, "received": 4e9, "unseen_sent": 3e9}
    interfaces = [traffic | {"unseen_sent_rate": 1e9}]
    page = visits(cluster).go("hosts", "Hosts")
    expect(part(page, "Look at")).to_have_count(0)
    assert cluster.call("POST", "/v1/hosts/h1/reports", batch(interfaces=interfaces)).ok
    expect(part(page, "Look at").get_by_role("listitem")).to_contain_text("h1: bytes on eth0 of host h1 are of no")
    expect(part(page, "Ask to be added")).to_have_count(0)
    assert cluster.call("POST", "/v1/hosts/h1/reports", batch(interfaces=[traffic])).ok
    expect(part(page, "Look at")).to_have_count(0)


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
    expect(fact(in_force, "Enforcement")).to_contain_text("at: switches, hosts")
