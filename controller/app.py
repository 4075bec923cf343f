"""The controller as a Ryu app. It connects the parts, and has no logic of its own.

    ryu-manager controller.app

``TRAINYARD_CONFIG`` names its YAML file; without it every setting has its default. Exit status: 0 after SIGINT or
SIGTERM; 1 where it cannot start, or where its stop could not write into the journal all that was acknowledged; 2 for
wrong settings.
"""

from __future__ import annotations

import atexit
import logging
import time
from functools import partial
from typing import Any, ClassVar

import eventlet.tpool
from eventlet import hubs
from ryu import cfg
from ryu.app.wsgi import WSGIApplication
from ryu.base.app_manager import RyuApp
from ryu.controller import ofp_event
from ryu.controller.handler import DEAD_DISPATCHER, MAIN_DISPATCHER, set_ev_cls
from ryu.lib import hub
from ryu.ofproto import ofproto_v1_3

from controller.access.audit.files import AuditError
from controller.access.audit.log import AuditLog
from controller.access.certificates.contexts import CertificateError, TlsContext
from controller.api import ApiServer, ServerError, Services, monitoring, register
from controller.api.calls.state import all_problems
from controller.api.live.feed import MOST_STREAMS
from controller.api.live.sampler import Sampler
from controller.api.live.sources import Sources
from controller.config.config import Config, ConfigError
from controller.config.current import CurrentSettings
from controller.config.file import read_settings
from controller.dataplane.peers import listener
from controller.dataplane.plane import Dataplane
from controller.enrolment.enrolments import Enrolments
from controller.enrolment.listed import Listed
from controller.journal.store import Store, StoreError
from controller.journal.writer import Journal
from controller.loop.host_changes import HostChanges
from controller.loop.loop import Loop
from controller.loop.metrics import Metrics
from controller.process import early, signals, startup
from controller.process.callers import callers_of
from controller.process.certificate_files import CertificateFiles
from controller.process.compiling import RuleCompiler
from controller.process.machine_reload import MachineReload
from controller.process.parts import (
    of_callers,
    of_databases,
    of_dataplane,
    of_loop,
    of_peers,
    of_registry,
    of_server,
)
from controller.process.sd_notify import Notifier
from controller.process.stopping import Step, Stop
from controller.process.watchdog import Watchdog
from controller.registry.registry import Registry
from controller.reload.reloader import Reloader
from controller.reload.watch import FileWatch

LOG = logging.getLogger("trainyard")
ECHO_SECONDS = 5.0
UNANSWERED_ECHOES = 3
"""Close the connection of a switch after this many unanswered echoes; Ryu by itself would wait for ever."""
STOP_SECONDS = 12.5
"""End the process if its stop takes longer; a service manager kills it after 90 s. The steps take 12 s at most."""
MONITORING_CONNECTIONS = 64
FINISH_SECONDS = 2.5
"""Let a stop wait this long for the requests that were being answered when it began."""


class Wsgi(WSGIApplication):
    """Ryu's class under another name. Ryu would start its own server for its own class, but we start ours."""


class Trainyard(RyuApp):
    """All parts of the controller, and their connections."""

    OFP_VERSIONS: ClassVar[list[int]] = [ofproto_v1_3.OFP_VERSION]
    _CONTEXTS: ClassVar[dict[str, type]] = {"wsgi": Wsgi}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        early.end_at_once()
        files = startup.raise_file_limit()
        try:
            loaded = read_settings(startup.config_path())
            config = loaded.config
            self._audit = _open_audit(config)
            callers = callers_of(config.api, config.host_names)
        except ConfigError as error:
            startup.end(2, str(error))
        try:
            startup.free_port("the API", config.api.host, config.api.port)
            if config.api.metrics_port is not None:
                startup.free_port("the address for monitoring", config.api.metrics_host, config.api.metrics_port)
            peers = _listen_for_switches(config, files // 4)
            databases = _database_tls(config)
            certificates = CertificateFiles(config)
            startup.log_large_journal(config)
            store = Store(config.journal)
            startup.warn_of_readable_tokens(config)
            startup.warn_of_no_journal(config)
            startup.log_what_is_left_alone(config)
            startup.log_what_the_dscps_cost(config)
        except (StoreError, startup.StartError, CertificateError) as error:
            startup.end(1, str(error))
        metrics = Metrics()
        enrolments, self._current, registry = _what_is_known(store, config)
        callers.enrolled = enrolments
        settings = startup.dataplane_settings(config, self._current.hosts)
        compiler = RuleCompiler(self._current)
        self._dataplane = Dataplane(settings, compiler.base, database_tls=databases)
        self._loop = Loop(registry, self._dataplane, self._current, store, metrics, compile_rules=compiler)
        self._journal = Journal(store)
        self._hosts = _host_changes(enrolments, registry, self._current, self._loop, self._dataplane)
        self._watchdog = Watchdog(Notifier())
        services = Services(
            self._current,
            registry,
            self._dataplane,
            self._loop,
            store,
            self._journal,
            metrics,
            callers,
            self._hosts,
            certificate_problems=certificates.problems,
            certificate_ends=certificates.ends,
            audit=self._audit,
        )
        services.feed.most_streams = min(MOST_STREAMS, files // 4)
        self._sources = Sources(services, all_problems)
        self._sampler = Sampler(services)
        self._workers = services.workers
        register(kwargs["wsgi"], services)
        try:
            self._server = ApiServer(kwargs["wsgi"], config.api, connections=files // 2, refused=metrics.refused)
            self._monitoring = _monitoring(services)
        except ServerError as error:
            startup.end(1, str(error))
        self._reloader = services.reloader = Reloader(
            loaded,
            self._current,
            [
                of_loop(self._loop),
                of_dataplane(self._dataplane, self._current.hosts_of),
                of_peers(peers),
                of_databases(databases),
                of_callers(services, config),
                of_server(self._server),
                certificates.prepare,
            ],
            of_registry(registry, self._current.hosts_of),
            between=self._loop.between_plans,
            count=lambda outcome: metrics.reloads.labels(outcome=outcome).inc(),
        )
        self._stop = Stop(
            [
                Step("systemd is told", 0.5, self._watchdog.stop),
                Step("the API takes no more requests", 0.5, self._server.close),
                *([Step("monitoring ends", 0.5, self._monitoring.close)] if self._monitoring is not None else []),
                Step("hosts that wait for a plan are answered", 0.5, self._loop.host_plans.close),
                Step("streams of events end", 0.5, self._sources.stop),
                Step("requests are answered", FINISH_SECONDS + 1.0, partial(self._server.drain, FINISH_SECONDS)),
                Step("what was answered is written into the journal", 3.0, self._journal.flush),
                Step("no hosts are looked for", 0.5, self._hosts.stop),
                Step("no more plans are made", 0.5, self._loop.stop),
                Step("no more samples are taken", 0.5, self._sampler.stop),
                Step("switches are let go", 0.5, self._dataplane.close),
                Step("the journal is closed", 1.0, self._journal.stop),
                Step("the audit is written", 1.0, self._audit.stop),
                Step("the processes that check bodies end", 0.5, self._workers.stop),
            ]
        )

    def start(self) -> Any:
        """Start everything that runs by itself; Ryu calls this once all apps are there."""
        super().start()
        startup.steady_the_interpreter()
        # At the exit it would wait for a plan that another thread is making, and that nobody needs any more.
        atexit.unregister(eventlet.tpool.killall)
        stop = partial(self._end, hub.getcurrent())
        reload = MachineReload(self._reloader, self._audit.add)
        signals.Signals(stop, partial(reload.run, "signal"), STOP_SECONDS).listen()
        FileWatch(self._reloader, self._current, partial(reload.run, "file")).start()
        self._journal.start()
        self._audit.start()
        self._audit.add({"who": "trainyard", "role": "controller", "action": "start", "outcome": "done"})
        self._workers.start()
        self._loop.start()
        self._hosts.start()
        self._sources.start()
        self._sampler.start()
        self._watchdog.start()
        if self._monitoring is not None:
            hub.spawn(self._monitoring)
        return hub.spawn(self._server)

    def close(self) -> None:
        """Stop; switches keep their rules, and their order until the gate closes."""
        self._stop.run()

    def _end(self, main: Any) -> None:
        """Stop, and only then let Ryu end its apps, as it does on Ctrl-C."""
        ending = KeyboardInterrupt() if self._stop.run() else SystemExit(signals.FAILED)
        hubs.get_hub().schedule_call_global(0, main.throw, ending)

    @set_ev_cls(ofp_event.EventOFPStateChange, [MAIN_DISPATCHER, DEAD_DISPATCHER])
    def _on_connection(self, event: Any) -> None:
        if event.datapath.id is None:
            return
        if event.state == MAIN_DISPATCHER:
            self._dataplane.connected(event.datapath)
            self._hosts.check_soon()
        else:
            self._dataplane.disconnected(event.datapath)

    @set_ev_cls(ofp_event.EventOFPPortStatus, MAIN_DISPATCHER)
    def _on_port(self, event: Any) -> None:
        self._dataplane.ports_changed(event.msg.datapath)
        self._hosts.check_soon()

    @set_ev_cls(
        [
            ofp_event.EventOFPBarrierReply,
            ofp_event.EventOFPEchoReply,
            ofp_event.EventOFPErrorMsg,
            ofp_event.EventOFPPacketIn,
            ofp_event.EventOFPFlowRemoved,
            ofp_event.EventOFPFlowStatsReply,
            ofp_event.EventOFPMeterConfigStatsReply,
            ofp_event.EventOFPAggregateStatsReply,
            ofp_event.EventOFPQueueStatsReply,
            ofp_event.EventOFPPortStatsReply,
            ofp_event.EventOFPPortDescStatsReply,
            ofp_event.EventONFBundleCtrlMsg,
        ],
        MAIN_DISPATCHER,
    )
    def _on_answer(self, event: Any) -> None:
        self._dataplane.deliver(event.msg)


def _what_is_known(store: Store, config: Config) -> tuple[Enrolments, CurrentSettings, Registry]:
    """Returns hosts, jobs and stages as the journal has them; ends the process where the journal is damaged."""
    try:
        enrolments = Enrolments(store, time.time, time.monotonic)
        current = CurrentSettings(config, lambda settings: enrolments.hosts(Listed.of(settings)))
        lease_seconds = config.lease_seconds
        registry = Registry(
            current.hosts,
            store,
            time.time,
            steady=time.monotonic,
            lease_seconds=lease_seconds,
            points=config.code_points,
        )
    except StoreError as error:
        startup.end(1, str(error))
    return enrolments, current, registry


def _host_changes(
    enrolments: Enrolments, registry: Registry, current: CurrentSettings, loop: Loop, dataplane: Dataplane
) -> HostChanges:
    """Returns what adds and removes hosts, connected to the switches where hosts announce themselves."""
    changes = HostChanges(
        enrolments,
        registry,
        current,
        loop,
        change_dataplane=lambda config, hosts: dataplane.change(startup.dataplane_settings(config, hosts)),
        listen=lambda is_listening: dataplane.listen(is_listening=is_listening),
    )
    dataplane.subscribe_to_announcements(changes.announced)
    return changes


def _open_audit(config: Config) -> AuditLog:
    """Returns the audit in the file that the settings name; ends the process where that file cannot be gone on with."""
    settings = config.audit
    try:
        return AuditLog(settings.file, max_bytes=settings.max_bytes, keep=settings.keep, clock=time.time)
    except AuditError as error:
        startup.end(1, str(error))


def _monitoring(services: Services) -> ApiServer | None:
    """Returns the server of the calls for monitoring, if they have an address of their own. Raises ServerError."""
    if services.config.api.metrics_port is None:
        return None
    return ApiServer(
        monitoring(services),
        services.config.api,
        connections=MONITORING_CONNECTIONS,
        refused=services.metrics.refused,
        is_monitoring=True,
    )


def _listen_for_switches(config: Config, connections: int) -> listener.Peers:
    """Let Ryu listen where the settings say, for ``connections`` at most.

    Returns who may connect. Raises StartError and CertificateError.
    """
    port = startup.free_port("OpenFlow", config.openflow.host, config.openflow.port)
    cfg.CONF.set_override("ofp_listen_host", config.openflow.host)
    cfg.CONF.set_override("ofp_tcp_listen_port", port)
    tls = config.openflow.tls
    peers = listener.install(config.openflow.switches, connections, tls.certificates if tls is not None else None)
    startup.warn_of_open_listener(config)
    cfg.CONF.set_override("echo_request_interval", ECHO_SECONDS)
    cfg.CONF.set_override("maximum_unreplied_echo_requests", UNANSWERED_ECHOES)
    return peers


def _database_tls(config: Config) -> TlsContext | None:
    """Returns the TLS to the databases of the switches; None where none needs it. Raises CertificateError."""
    certificates = config.database_certificates
    return TlsContext(certificates, "client") if certificates is not None else None
