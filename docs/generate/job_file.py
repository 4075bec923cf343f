"""The reference of the job file."""

from __future__ import annotations

from docs.generate.markdown import code, heading, prose, table
from docs.generate.sections import sections
from host_reporter.jobs.job_file import JobDocument
from host_reporter.readers.parse import GROUPS, RECORD_KEYS


def reference() -> str:
    """Returns the Markdown."""
    groups = ((code(name), prose(text, f"the group {name}")) for name, text in GROUPS.items())
    keys = ((code(name), prose(text, f"the key {name}")) for name, text in RECORD_KEYS.items())
    return (
        sections(JobDocument.model_json_schema(), word="field")
        + heading(2, "Named groups of `progress.pattern`", "groups")
        + table(["group", "meaning"], groups)
        + heading(2, "Keys of a JSON line", "json-lines")
        + "Such lines are in the file of `progress.jsonl` without `fields`, and in the progress file of a job "
        "without `progress`.\n\n" + table(["key", "meaning"], keys)
    )
