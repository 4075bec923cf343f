"""TF_CONFIG: TensorFlow's own description of a cluster, which scripts and operators set."""

from __future__ import annotations

from host_reporter.launchers.facts import ProcessFacts
from host_reporter.launchers.launcher import Launcher, Precedence, Sighting
from host_reporter.training.ranks import TF_CONFIG, tf_config, tf_ranks


class TfConfig(Launcher):
    """A task of a cluster in TF_CONFIG (https://www.tensorflow.org/guide/distributed_training).

    The cluster has no id. Its name is the address of its first task, which all tasks have in common.
    """

    name = "tensorflow"
    precedence = Precedence.FRAMEWORK
    reads = frozenset({TF_CONFIG})

    def see(self, facts: ProcessFacts) -> Sighting | None:
        """Returns the cluster of a task."""
        config, ranks = tf_config(facts.environment), tf_ranks(facts.environment)
        if config is None or ranks is None:
            return None
        listed = (config[0].get(kind, []) for kind in ("chief", "master", "worker", "ps"))
        first = next((addresses[0] for addresses in listed if addresses), "")
        address, _, port = first.rpartition(":")
        place = facts.host if address in ("", "localhost") or address.startswith("127.") else address
        return self.ranked(f"{place}-{port}", ranks)
