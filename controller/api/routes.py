"""The table of calls: path, access, request body and answers. Dispatch and OpenAPI both read it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from controller.api.access import Access
from controller.api.calls import audit, console, explain, families, hosts, jobs, parts, plans, reload, state
from controller.api.exposition.metrics import read_metrics
from controller.api.http import Call, Reply, in_words
from controller.api.live.history import KEPT_SECONDS, read_history
from controller.api.live.network import read_network
from controller.api.live.stream import MEDIA_TYPE, follow_events
from controller.api.services import Services
from controller.events.rings import SAMPLE_SECONDS
from controller.refusals import Invalid
from controller.wire import (
    EVERY_ADDRESS,
    EVERY_PROTOCOL,
    MAX_METRIC,
    MAX_POSITIVE,
    MIN_POSITIVE,
    NAME_PATTERN,
    AuditTrail,
    CallerView,
    EventDocument,
    Explanation,
    FamilyList,
    FamilyRuns,
    HistoryView,
    HostList,
    HostPlan,
    HostPut,
    HostReport,
    HostView,
    JobList,
    JobSpec,
    JobState,
    Message,
    Network,
    PartAnswer,
    PartSpec,
    Peers,
    PlanView,
    Readiness,
    ReloadAnswer,
    ReportAnswer,
    Settings,
    StageSpec,
    StageState,
    Status,
)

Handler = Callable[[Services, Call], Reply]


@dataclass(frozen=True)
class Parameter:
    """A query parameter. ``text`` describes it; ``schema`` is the JSON Schema of its value."""

    text: str
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "string"})


@dataclass(frozen=True)
class Route:
    """One call.

    ``answers`` has the model of each success status (None: no model, and for 204 and 304 no body). ``refusals`` are the
    error statuses of the handler itself, beside those that all such calls have. ``query`` has the query parameters by
    name. A call that may answer 304 accepts ``If-None-Match`` and sends an entity tag. ``header`` names another header
    that the call looks at, and describes it.
    """

    method: str
    path: str
    handler: Handler
    access: Access
    answers: Mapping[int, type[Message] | None]
    refusals: tuple[int, ...] = ()
    body: type[Message] | None = None
    query: Mapping[str, Parameter] = field(default_factory=dict)
    media_type: str = "application/json"
    header: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """The method and the path."""
        return f"{self.method} {self.path}"

    @property
    def changes(self) -> bool:
        """Whether the call changes what operators and users decide. An agent's report does not."""
        return self.method not in ("GET", "HEAD") and self.path != REPORTS

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return (self.handler.__doc__ or "").strip().splitlines()[0]


PART = "/v1/jobs/{id}/parts/{host}"
RELOAD = "/v1/reload"
HOST = "/v1/hosts/{host}"
REPORTS = "/v1/hosts/{host}/reports"
_OF_USER = {"user": Parameter("Only the family of this user")}


def read_caller(_services: Services, call: Call) -> Reply:
    """Read who calls, and which calls the caller's role may make."""
    role = call.caller.role
    calls = tuple(route.name for route in ROUTES if role in route.access.roles)
    return Reply.of(CallerView(name=call.caller.name, role=role.value, calls=calls))


ROUTES: tuple[Route, ...] = (
    Route("GET", "/v1/caller", read_caller, Access.KNOWN, {200: CallerView}),
    Route("GET", "/v1/jobs", jobs.list_jobs, Access.READ_JOB, {200: JobList}),
    Route("GET", "/v1/jobs/{id}", jobs.get_job, Access.READ_JOB, {200: JobState}, (404,)),
    Route(
        "PUT",
        "/v1/jobs/{id}",
        jobs.put_job,
        Access.CHANGE_JOB,
        {200: JobState, 201: JobState},
        (403, 409),
        body=JobSpec,
    ),
    Route("DELETE", "/v1/jobs/{id}", jobs.delete_job, Access.CHANGE_JOB, {204: None}, (403, 404)),
    Route(
        "PUT",
        PART,
        parts.put_part,
        Access.CHANGE_JOB,
        {200: PartAnswer, 201: PartAnswer},
        (403, 404, 409),
        body=PartSpec,
    ),
    Route(
        "DELETE",
        PART,
        parts.delete_part,
        Access.CHANGE_JOB,
        {204: None},
        (404, 409),
        query={
            "arrival": Parameter(
                "That of the launch that is meant: the part of a later launch stays. Without it: any launch",
                {"type": "number", "minimum": 0, "maximum": parts.LATEST},
            )
        },
    ),
    Route(
        "GET",
        "/v1/jobs/{id}/explain",
        explain.explain,
        Access.READ_JOB,
        {200: Explanation},
        (403, 404, 409),
        query={
            "policy": Parameter("The name of a policy: as this policy would order the jobs now. Not for tenants"),
            "weight": Parameter(
                "As if the job had this weight. Not for tenants",
                {"type": "number", "minimum": MIN_POSITIVE, "maximum": MAX_POSITIVE},
            ),
            explain.WEIGHTS: Parameter(
                f"As if the job had one of these weights, at most {explain.MOST_WEIGHTS}, which commas separate: only "
                "outcomes say so, and all else is as it is. Not for tenants"
            ),
            "target": Parameter(
                "As if the job declared this target. Not for tenants",
                {"type": "number", "minimum": -MAX_METRIC, "maximum": MAX_METRIC},
            ),
        },
    ),
    Route(
        "PUT",
        "/v1/stages/{id}",
        jobs.put_stage,
        Access.OPERATE,
        {200: StageState, 201: StageState},
        (409,),
        body=StageSpec,
    ),
    Route("DELETE", "/v1/stages/{id}", jobs.delete_stage, Access.OPERATE, {204: None}, (404,)),
    Route("GET", "/v1/hosts", hosts.list_hosts, Access.READ, {200: HostList}),
    Route("PUT", HOST, hosts.put_host, Access.ENROL, {200: HostView, 201: HostView}, (403, 404, 409), body=HostPut),
    Route(
        "DELETE",
        HOST,
        hosts.delete_host,
        Access.OPERATE,
        {204: None},
        (404, 409),
        query={
            "force": Parameter(
                "true: also where jobs run on the host, which are removed too",
                {"type": "string", "enum": ["true", "false"], "default": "false"},
            )
        },
    ),
    Route("POST", REPORTS, plans.post_report, Access.REPORT, {200: ReportAnswer}, (404,), body=HostReport),
    Route(
        "GET",
        "/v1/hosts/{host}/plan",
        plans.host_plan,
        Access.READ_HOST,
        {200: HostPlan, 304: None},
        (404,),
        query={
            "wait": Parameter(
                "Seconds to wait for a plan whose entity tag is not that of If-None-Match",
                {"type": "number", "minimum": 0, "maximum": plans.MAX_WAIT_SECONDS, "default": 0},
            )
        },
        header=(
            "Prefer",
            f"{EVERY_ADDRESS}: marks whose remote is an IPv6 address, too. {EVERY_PROTOCOL}: protocol_marks, too",
        ),
    ),
    Route(
        "GET",
        "/v1/hosts/{host}/peers",
        plans.host_peers,
        Access.READ_HOST,
        {200: Peers, 304: None},
        (404,),
        header=("Prefer", f"{EVERY_ADDRESS}: IPv6 addresses, too, and which interface of a host has an address"),
    ),
    Route(
        "GET",
        "/v1/plan",
        plans.get_plan,
        Access.READ,
        {200: PlanView},
        query={"policy": Parameter("The name of a policy: the plan that it would make now, without applying it")},
    ),
    Route("GET", "/v1/families", families.list_families, Access.READ, {200: FamilyList}),
    Route("GET", "/v1/families/{name}", families.get_family, Access.READ, {200: FamilyRuns}, (404,), query=_OF_USER),
    Route("DELETE", "/v1/families/{name}", families.delete_family, Access.OPERATE, {204: None}, (404,), query=_OF_USER),
    Route("GET", "/v1/settings", plans.get_settings, Access.READ, {200: Settings}),
    Route("PATCH", "/v1/settings", plans.patch_settings, Access.OPERATE, {200: Settings}, body=Settings),
    Route("POST", RELOAD, reload.post_reload, Access.OPERATE, {200: ReloadAnswer}, (409, 422)),
    Route(
        "GET",
        "/v1/audit",
        audit.read_audit,
        Access.OPERATE,
        {200: AuditTrail},
        query={
            "since": Parameter(
                "Only records after the one with this number, the oldest first; without it, the newest ones",
                {"type": "integer", "minimum": 0},
            ),
            "limit": Parameter(
                "At most this many records",
                {"type": "integer", "minimum": 1, "maximum": audit.MAX_LIMIT, "default": audit.LIMIT},
            ),
        },
    ),
    Route(
        "GET",
        "/v1/events",
        follow_events,
        Access.READ_JOB,
        {200: EventDocument},
        header=("Last-Event-ID", "The id of the last event that the client has; 0 asks for all that is kept"),
        media_type=MEDIA_TYPE,
    ),
    Route(
        "GET",
        "/v1/history",
        read_history,
        Access.READ_JOB,
        {200: HistoryView},
        (404,),
        query={
            "since": Parameter(
                "From this time on, in seconds since the Unix epoch; without it, the whole hour",
                {"type": "number", "minimum": 0},
            ),
            "step": Parameter(
                "The seconds of a step, rounded up to a multiple of 5; without it 5, or more for a large answer",
                {"type": "number", "minimum": SAMPLE_SECONDS, "maximum": KEPT_SECONDS},
            ),
            "jobs": Parameter("Only these jobs, with commas between them"),
            "ports": Parameter("Only these ports, with commas between them"),
        },
    ),
    Route("GET", "/v1/network", read_network, Access.READ, {200: Network}),
    Route("GET", "/v1/status", state.status, Access.READ, {200: Status}),
    Route("GET", "/metrics", read_metrics, Access.READ, {200: None}, media_type="text/plain"),
    Route("GET", "/healthz", state.healthz, Access.OPEN, {200: Readiness}),
    Route("GET", "/readyz", state.readyz, Access.OPEN, {200: Readiness}),
)

MONITORING = tuple(
    replace(route, access=Access.OPEN) for route in ROUTES if route.path in ("/metrics", "/healthz", "/readyz")
)
"""The calls at the address for monitoring, where nobody needs a token."""

CONSOLE = (
    Route("GET", "/", console.console_page, Access.OPEN, {200: None, 304: None}),
    Route("GET", "/console/{path}", console.console_file, Access.OPEN, {200: None, 304: None}, (404,)),
)
"""The calls for the console's static files. They are for browsers, so the description of the API leaves them out."""

_NAME = re.compile(NAME_PATTERN)
_FREE = ("name", "path")
"""The parts of a path that name a family, or a file of the console. They may have slashes; their calls check them."""


def pattern(path: str) -> re.Pattern[str]:
    """Returns a path template as a regular expression.

    Each name in braces matches anything but a slash, and the name of a family or a file matches anything.
    """
    parts = re.split(r"\{(\w+)\}", path)
    text = "".join(re.escape(part) if i % 2 == 0 else _group(part) for i, part in enumerate(parts))
    return re.compile(text)


def _group(part: str) -> str:
    return rf"(?P<{part}>[\s\S]+)" if part in _FREE else f"(?P<{part}>[^/]+)"


def check_names(parts: Mapping[str, str]) -> None:
    """Raises Invalid for each part of a path that is not a valid name of a job, stage or host."""
    errors = [
        (
            part,
            f"{in_words(name)[:80]!r} is no name, which has 1 to 63 letters, digits, dots, dashes and underscores, and "
            "begins with a letter or digit",
        )
        for part, name in parts.items()
        if part not in _FREE and _NAME.fullmatch(name) is None
    ]
    if errors:
        raise Invalid(errors)
