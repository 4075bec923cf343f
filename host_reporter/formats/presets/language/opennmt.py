"""OpenNMT-py: ``Step 20/   60; acc: 16.9; ppl: 20.0; ...``, and lines of the validation after a step.

``Validation perplexity: 19.0607`` belongs to the step before it.
"""

from __future__ import annotations

from host_reporter.formats.numbers import NUMBER
from host_reporter.formats.preset import Pattern, Preset

PRESET = Preset(
    name="opennmt",
    title="OpenNMT-py",
    source="https://github.com/OpenNMT/OpenNMT-py/blob/master/onmt/utils/statistics.py",
    marks=r"\bStep \d{1,12}/\s{0,12}\d{1,12}; acc:\s{1,8}\S{1,12}; ppl:",
    patterns=(
        Pattern(
            regex=rf"\bStep (?P<iteration>{NUMBER})/\s{{0,12}}(?P<total>{NUMBER}); acc:\s{{1,8}}\S{{1,12}}; "
            rf"ppl:\s{{1,8}}(?P<metric>{NUMBER});",
            metric="train perplexity",
        ),
        Pattern(regex=rf"\bValidation perplexity: (?P<metric>{NUMBER})", metric="validation perplexity"),
        Pattern(regex=r"\bStart training loop\b", begun=True),
    ),
)
