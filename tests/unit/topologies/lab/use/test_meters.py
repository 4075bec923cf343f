"""What an arm uses of processors and links, by the kernel's counters."""

from __future__ import annotations

from pathlib import Path

import pytest

from topologies.lab.use.meters import SAMPLE_SECONDS, LinkUse, Meter, MeteredLink


class Kernel:
    """The counters of a kernel whose clock and numbers the test sets."""

    def __init__(self, proc: Path) -> None:
        self.proc = proc
        self.now = 100.0
        self.count(busy=100, idle=100, received=1000, sent=5000)

    def count(self, *, busy: int, idle: int, received: int, sent: int) -> None:
        (self.proc / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n")
        (self.proc / "7" / "net").mkdir(parents=True, exist_ok=True)
        header = "Inter-| Receive | Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n"
        lines = f"    lo: 9 9 9 9 9 9 9 9 9 9\nh1-eth0: {received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0\n"
        (self.proc / "7" / "net" / "dev").write_text(header + lines)

    def meter(self) -> Meter:
        """A meter of a link of 1 Mbit/s."""
        return Meter([MeteredLink("h1", "h1-eth0", 7)], 1e6, proc=self.proc, clock=lambda: self.now)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


def test_a_meter_tells_shares_of_processors_and_links(kernel: Kernel) -> None:
    meter = kernel.meter()
    kernel.now += 10.0
    kernel.count(busy=160, idle=140, received=126_000, sent=630_000)
    used = meter.use()
    assert used.busy_share == pytest.approx(0.6)
    assert used.links == (LinkUse("h1", pytest.approx(0.5), pytest.approx(0.1), "h1-eth0"),)
    with pytest.raises(FileNotFoundError, match="no interface h2-eth0"):
        Meter([MeteredLink("h2", "h2-eth0", 7)], 1e6, proc=kernel.proc)


def test_samples_tell_how_much_the_use_varies(kernel: Kernel) -> None:
    meter = kernel.meter()
    for busy, idle, received, sent in ((180, 120, 1000, 130_000), (200, 200, 126_000, 130_000)):
        kernel.now += SAMPLE_SECONDS
        kernel.count(busy=busy, idle=idle, received=received, sent=sent)
        meter.sample()
        kernel.now += 0.1 * SAMPLE_SECONDS
        meter.sample()
        kernel.now -= 0.1 * SAMPLE_SECONDS
    used = meter.use()
    # Shares of 0.8 and 0.2 of the processors; of the link 1 and 0 out of it, 0 and 1 into it.
    assert used.busy_share == pytest.approx(0.5)
    assert used.busy_variance == pytest.approx(0.09)
    (link,) = used.links
    assert (link.egress_share, link.ingress_share) == (pytest.approx(0.5), pytest.approx(0.5))
    assert (link.egress_variance, link.ingress_variance) == (pytest.approx(0.25), pytest.approx(0.25))
