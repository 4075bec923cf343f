"""What ``GET /metrics`` has answered, by name and labels."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families


class Samples:
    """The samples of one answer."""

    def __init__(self, text: str) -> None:
        self.families = {family.name: family for family in text_string_to_metric_families(text)}
        self._samples = [sample for family in self.families.values() for sample in family.samples]

    def of(self, name: str, **labels: str) -> list[tuple[dict[str, str], float]]:
        """The labels and values of the samples of this name that have these labels."""
        return [
            (sample.labels, sample.value)
            for sample in self._samples
            if sample.name == name and labels.items() <= sample.labels.items()
        ]

    def value(self, name: str, **labels: str) -> float:
        """The value of the one sample of this name that has these labels."""
        ((_, value),) = self.of(name, **labels)
        return value

    def by(self, label: str, name: str) -> dict[str, float]:
        """The values of a name by one label."""
        return {labels[label]: value for labels, value in self.of(name)}
