"""A ``linux.uml`` that is a script: it takes a lab's request as the box hands it over, and answers at once.

Everything up to the process boundary is real: the choice of the datapath, the box's folder, pipes and ends.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

SCRIPT = (
    f"#!{sys.executable} -S\n"
    + """
import json, os, re, shlex, shutil, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent
orders = json.loads((here / "orders.json").read_text())
given = dict(word.split("=", 1) for word in sys.argv[1:] if "=" in word)
folder = Path(given["init"]).parent
results = Path(shlex.split((folder / "command").read_text().splitlines()[-1])[-1])
child = subprocess.Popen(["sleep", "1000"]) if orders["hang"] else None
with (here / "runs").open("a") as runs:
    runs.write(f"{os.getpid()} {child.pid if child else os.getpid()} {results}\\n")
if orders["hang"]:
    alive = int(re.search(r"\\d+", given["con3"])[0])
    while os.read(alive, 1) or orders["hang"] == "for ever":
        time.sleep(0.05)
    child.kill()
    child.wait()
    # A box whose caller is gone clears up after it.
    shutil.rmtree(folder, ignore_errors=True)
    sys.exit()

def tell(event):
    os.write(int(given["con1"].rpartition(":")[2]), json.dumps({"event": event}).encode() + b"\\n")

if results.name in orders["fail"] or "all" in orders["fail"]:
    tell({"failure": f"{results.name} went wrong"})
    (folder / "status").write_text("1")
    sys.exit()

request = json.loads((results / "request.json").read_text())
arms, alone = [], {}
for experiment in request["experiments"]:
    name = f"{experiment['name']}-{experiment['seed']}"
    if request["alone_iterations"]:
        alone[name] = {job["id"]: 1e-4 for job in experiment["jobs"]}
    for choice in request["policies"]:
        policy = choice["label"] or choice["policy"]
        tell({"phase": "arm", "text": policy, "policy": policy, "done": 1, "total": 1})
        factor = 2.0 if choice["policy"] in ("jpas", "everything", "beamer") else 4.0
        jobs = {}
        for number, job in enumerate(experiment["jobs"], start=1):
            t90 = factor * (10 + number)
            jobs[job["id"]] = {
                "t90_seconds": t90, "t95_seconds": t90 + 1, "jct_seconds": t90 + 2, "censored": False,
                "watched_seconds": t90 + 2, "history": [[t90 * k / 10, k, 0.09 * k] for k in range(1, 11)],
            }
        studies = []
        for study in experiment.get("studies", []):
            took = {"seconds": factor * 4, "watched_seconds": factor * 4}
            stages = [
                {"stage": f"b0.r{rung}", "jobs": [], "arrival": 9.0, **took}
                for rung in range(len(study["rungs"]))
            ]
            studies.append({
                "study": study["name"], "rungs": len(stages), "stages": stages, "best_seconds": factor * 15,
                "best_trial": 1, "best_metric": 0.9, "watched_seconds": factor * 15, "tuner": "optuna 0",
            })
        control = {
            "report_to_rule_count": 9, "report_to_rule_p50": 0.01, "report_to_rule_p99": 0.02, "plans": 9,
            "flow_mods": 9, "gate_renewals": 9,
        }
        arms.append({
            "experiment": experiment["name"], "seed": experiment["seed"], "policy": policy, "jobs": jobs,
            "control": control, "bytes_by_class": [1] * 8, "cpu_idle_share": 0.5, "seconds": 60.0, "studies": studies,
        })
result = {
    "datapath": "uml", "hosts": 13, "link_bps": 1e8, "queues": 8, "alone_seconds": alone, "arms": arms,
    "queue_proof": {"high_bps": 95e6, "low_bps": 1e6} if request["queue_proof"] else None,
    "rails": request["experiments"][0]["rails"], "addresses": request["experiments"][0]["addresses"],
}
(results / "lab.json").write_text(json.dumps(result))
(folder / "status").write_text("0")
"""
)


class FakeKernel:
    """A fake box kernel.

    With ``hang`` its boxes run until their caller is gone, or "for ever". ``fail`` names groups that fail.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        script = folder / "linux.uml"
        script.write_text(SCRIPT)
        script.chmod(0o755)
        self.path = f"{folder}:{os.environ['PATH']}"
        self.order()

    def order(self, *, hang: bool | str = False, fail: tuple[str, ...] = ()) -> None:
        (self.folder / "orders.json").write_text(json.dumps({"hang": hang, "fail": fail}))

    def runs(self) -> list[str]:
        """The names of the results' folders of all boxes so far, in order."""
        return [Path(words[2]).name for words in self._runs()]

    def processes(self) -> list[int]:
        """All processes of all boxes that were started."""
        return [int(pid) for words in self._runs() for pid in words[:2]]

    def forget(self) -> None:
        (self.folder / "runs").unlink(missing_ok=True)

    def _runs(self) -> list[list[str]]:
        file = self.folder / "runs"
        return [line.split(" ", 2) for line in file.read_text().splitlines()] if file.exists() else []


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
