"""The leases of hosts' agents: who lives, and which jobs and connections nobody speaks for any more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from controller.declared.batch import InterfacePart
from controller.registry.agents.record import HostRecord
from controller.registry.job.record import JobRecord

AgentWord = Literal["reporting", "silent", "none"]
HANDOVER_SECONDS = 45.0
"""A new agent has this long to report the connections that the agent before it found; then those are forgotten.

Its first batch comes before it has read a job file, knows the hosts' addresses and has looked at a socket. What is lost
on the way it reports again within 30 s.
"""


class Leases:
    """The agents by host. ``steady`` is a clock that nobody sets; ``seconds`` is how long a lease runs."""

    def __init__(self, agents: dict[str, HostRecord], steady: Callable[[], float], seconds: float) -> None:
        self.agents = agents
        self.seconds = seconds
        self._steady = steady

    def renew(self, host: str) -> HostRecord:
        """Renew the lease of a host; returns what is known of its agent."""
        agent = self.agents.setdefault(host, HostRecord())
        agent.last_seen = self._steady()
        return agent

    def forget(self, host: str) -> None:
        """Forget the agent of a host that is gone."""
        self.agents.pop(host, None)

    def is_alive(self, host: str) -> bool:
        """Returns whether the host's lease runs."""
        agent = self.agents.get(host)
        return agent is not None and agent.alive(self._steady(), self.seconds)

    def is_silent(self, host: str) -> bool:
        """Returns whether the host's agent has reported, and its lease is over."""
        return host in self.agents and not self.is_alive(host)

    def agent(self, host: str) -> AgentWord:
        """Returns whether the host's agent reports, is silent for longer than a lease, or was never heard of."""
        if self.is_alive(host):
            return "reporting"
        return "silent" if self.is_silent(host) else "none"

    def acknowledging(self) -> frozenset[str]:
        """Returns the hosts that mark acknowledgements and whose leases run."""
        now = self._steady()
        return frozenset(
            host
            for host, agent in self.agents.items()
            if agent.marks_acknowledgements and agent.alive(now, self.seconds)
        )

    def tunnels(self) -> dict[str, tuple[int, ...]]:
        """Returns the UDP ports of the tunnels of hosts that mark outer headers and whose leases run."""
        now = self._steady()
        return {
            host: agent.tunnel_ports
            for host, agent in self.agents.items()
            if agent.tunnel_ports and agent.alive(now, self.seconds)
        }

    def marks(self, host: str) -> bool | None:
        """Returns whether a host marks packets of jobs; None where its lease is over, or where that is not known."""
        return self.agents[host].marks if self.is_alive(host) else None

    def interfaces(self, host: str) -> tuple[InterfacePart, ...]:
        """Returns what a host's agent says of its interfaces; empty where its lease is over."""
        return self.agents[host].interfaces if self.is_alive(host) else ()

    def clock_offset(self, host: str) -> float | None:
        """Returns what to add to a host's times to get the controller's, in seconds; None before it has reported."""
        agent = self.agents.get(host)
        return agent.clock.known_offset if agent is not None else None

    def now(self) -> float:
        """Returns the time by which leases run."""
        return self._steady()

    def are_over_for(self, job: JobRecord, now: float) -> bool:
        """Returns whether all hosts that speak for a job, as far as they were ever heard of, are silent for a lease."""
        agents = [agent for name in job.witnesses if (agent := self.agents.get(name)) and agent.last_seen is not None]
        return bool(agents) and not any(agent.alive(now, self.seconds) for agent in agents)

    def absent_reporters(self, job: JobRecord, now: float) -> list[str]:
        """Returns the hosts whose connections of a job nobody confirms any more.

        Such a host has been silent for a lease, or another agent has taken the place of the one that found them. An
        agent that was only away reports everything again by itself.
        """
        return [host for host, session in job.connections.found.sessions.items() if self._is_gone(host, session, now)]

    def _is_gone(self, host: str, session: str, now: float) -> bool:
        agent = self.agents.get(host)
        if agent is None or not agent.alive(now, self.seconds):
            return True
        return session != agent.session and now - agent.session_since > HANDOVER_SECONDS
