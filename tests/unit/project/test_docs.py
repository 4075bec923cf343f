"""Every setting, command, job-file field, call and policy has a description, and its generated reference names it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from controller.api.routes import ROUTES
from controller.config.config import Config, load_config
from controller.documents.explained_model import ExplainedModel, field_texts
from controller.policies.parts.options import Number, describe
from controller.policies.registry import available
from docs.generate import api, commands, job_file, packets, policies, settings
from docs.generate.__main__ import REFERENCES
from docs.generate.markdown import MissingTextError
from docs.generate.offline import foreign
from docs.generate.schema import fields
from host_reporter.jobs.job_file import JobDocument, read_job_file
from host_reporter.options import Options
from host_reporter.readers.match_limit import MatchLimit
from host_reporter.readers.parse import GROUPS, RECORD_KEYS, Described, Ended, Point
from tests.support.paths import ROOT


def models(value: object) -> set[type[BaseModel]]:
    """Returns a model, and all models in the types of its fields."""
    if isinstance(value, type) and issubclass(value, BaseModel):
        return {value}.union(*(models(field.annotation) for field in value.model_fields.values()))
    return set().union(*map(models, getattr(value, "__args__", ())))


def section(reference: str, title: str) -> str:
    """Returns the text below a heading, up to the next heading."""
    found = re.search(rf"^#+ `{re.escape(title)}` \{{.*?\}}\n(.*?)(?=^#|\Z)", reference, re.MULTILINE | re.DOTALL)
    assert found is not None, f"no heading {title}"
    return found[1]


def first_cells(text: str) -> set[str]:
    return set(re.findall(r"^\| `(.+?)` \|", text, re.MULTILINE))


def example(page: str, folder: Path) -> Path:
    """Returns a file with the first YAML block of a page."""
    found = re.search(
        r"^```yaml\n(.*?)^```", (ROOT / "docs" / "reference" / page).read_text(), re.MULTILINE | re.DOTALL
    )
    assert found is not None
    (folder / "example.yaml").write_text(found[1])
    return folder / "example.yaml"


BODIES = {model for route in ROUTES for model in (*route.answers.values(), route.body) if model is not None}


@pytest.mark.parametrize("root", [Config, JobDocument, *sorted(BODIES, key=lambda model: model.__name__)])
def test_every_field_has_a_description(root: type[BaseModel]) -> None:
    for model in models(root):
        assert set(field_texts(model)) == set(model.model_fields), model.__name__


def test_the_settings_are_all_in_their_reference() -> None:
    reference = settings.reference()
    assert first_cells(reference.partition("\n#")[0]) == set(Config.model_fields)
    for place, model in (("floors", "Floors"), ("hosts", "HostEntry"), ("links", "LinkEntry"), ("api", "Api")):
        (found,) = (one for one in models(Config) if one.__name__ == model)
        assert first_cells(section(reference, place)) == set(found.model_fields)


def test_a_setting_is_shown_with_its_default_range_and_meaning() -> None:
    line = "| `period_seconds` | `5` | number from 0.1 to 3600 | The longest time between two plans. "
    assert line in settings.reference()
    assert "| `host_jobs` | `whole` | `whole`, `own` | What a host's own token may register. " in settings.reference()


def test_the_job_files_fields_are_all_in_their_reference() -> None:
    reference = job_file.reference()
    named = first_cells(reference)
    for model in models(JobDocument):
        assert set(model.model_fields) <= named
    assert set(GROUPS) | set(RECORD_KEYS) <= named
    assert {"end_pattern", "jsonl", "time", "loss"} <= named


def test_the_examples_of_the_references_can_be_used(tmp_path: Path) -> None:
    assert load_config(example("settings.md", tmp_path)).policy == "las"
    file = example("job-file.md", tmp_path)
    log = tmp_path / "resnet.log"
    log.write_text("step 12 loss 0.5\ntraining finished\n")
    job = read_job_file(file, file.read_text().replace("/var/log/resnet.log", str(log)), tmp_path)
    events, _ = job.source().poll(MatchLimit())
    assert [event for event in events if not isinstance(event, Described)] == [Point(12, 0.5), Ended()]


def test_every_call_is_in_its_reference_with_parameters_bodies_and_statuses() -> None:
    reference = api.reference()
    for route in ROUTES:
        text = section(reference, f"{route.method} {route.path}")
        assert set(re.findall(r"\{(\w+)\}", route.path)) | set(route.query) <= first_cells(text)
        assert {str(int(status)) for status in (*route.answers, *route.refusals)} <= set(re.findall(r"\b\d{3}\b", text))
        if route.body is not None:
            assert f"[{route.body.__name__}](#{route.body.__name__.lower()})" in text
    for model in models(tuple[*BODIES]):
        assert first_cells(section(reference, model.__name__)) == set(model.model_fields)


def test_every_command_is_in_the_reference_with_its_arguments() -> None:
    reference = commands.reference()
    found = dict(commands.parsers())
    found |= {f"trainyard {name}": parser for name, _, parser in commands.subcommands(found["trainyard"])}
    assert {"trainyard lab", "trainyard sim", "trainyard predict", "trainyard order"} <= set(found)
    for name, parser in found.items():
        text = section(reference, name)
        for action in commands.arguments(parser):
            assert any(
                cell.startswith((*action.option_strings, str(action.metavar), f"[{action.metavar}", "[{"))
                for cell in first_cells(text)
            ), (name, action)


def test_every_option_of_the_agents_file_is_an_argument_of_its_command() -> None:
    text = section(commands.reference(), "host-reporter")
    for option in set(Options.model_fields) - {"interfaces", "marking"}:
        assert f"`--{option.replace('_', '-')} " in text
    assert "`--interface IF` | The interface whose traffic is ordered; give it several times for several" in text
    assert "`--no-marking`" in text


def test_every_policy_is_in_its_reference_with_its_options() -> None:
    named = first_cells(policies.reference()) | set(re.findall(r"^\| \[`(.+?)`\]", policies.reference(), re.MULTILINE))
    page = (ROOT / "docs" / "policies.md").read_text()
    for name, policy in available().items():
        assert name in named
        assert {f"{name}.{option}" for option in describe(policy) or {}} <= named
        assert re.search(rf"^## .*{name}", page, re.MULTILINE), "and the page has a section on it"


def test_every_kind_of_packet_is_in_its_reference_below_its_place() -> None:
    table, reference = packets.read(), packets.reference()
    for name, place in table.places.items():
        rows = re.findall(r"^\| (.+?) \| (.+?) \|", section(reference, name), re.MULTILINE)[2:]
        assert rows == [(row.what, row.between) for row in table.rows if row.place == name]
        assert f"| `{name}` | {place.what} | " in reference


@pytest.mark.parametrize("name", REFERENCES)
def test_a_page_includes_each_reference(name: str) -> None:
    pages = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    assert sum(f'--8<-- "{name}"' in page for page in pages) == 1


def test_a_field_without_a_description_is_refused() -> None:
    class Bare(ExplainedModel):
        silent: int = 1

    with pytest.raises(MissingTextError, match="the field silent of Bare has no description"):
        list(fields("Bare", Bare.model_json_schema(), str))


@pytest.mark.parametrize("level", ["command", "argument"])
def test_a_command_or_an_argument_without_a_help_text_is_refused(level: str) -> None:
    parser = argparse.ArgumentParser(description="Do nothing." if level == "argument" else None)
    parser.add_argument("--silent")
    with pytest.raises(MissingTextError, match="of nothing" if level == "argument" else "the command nothing"):
        commands.reference({"nothing": parser})


@pytest.mark.parametrize("text", [None, "What it does."])
def test_a_policys_option_without_a_meaning_is_refused(text: str | None) -> None:
    class Quiet:
        """A rule."""

        def __init__(self, share: Any = 0.5) -> None: ...

    Quiet.__init__.__annotations__["share"] = Annotated[float, Number(), text] if text else Annotated[float, Number()]
    if text is None:
        with pytest.raises(MissingTextError, match="the option share of quiet"):
            policies.reference({"quiet": Quiet})
    else:
        assert "| `quiet.share` | `0.5` | number from 0 to 1e9 | What it does. |" in policies.reference(
            {"quiet": Quiet}
        )


@pytest.mark.parametrize(
    ("file", "text", "is_foreign"),
    [
        ("a.html", '<script src="https://cdn.example/a.js"></script>', True),
        ("a.html", '<link rel="preconnect stylesheet" href="//fonts.example/a.css">', True),
        ("a.html", '<img src="a.svg" srcset="a.png 1x, http://b.example/b.png 2x">', True),
        ("a.html", '<p style="background: url(https://b.example/b.png)">', True),
        ("a/b.css", "@import 'https://b.example/b.css';", True),
        ("a.html", '<a href="https://b.example/">elsewhere</a><link rel="canonical" href="https://b.example/">', False),
        ("a.html", '<script src="../a.js"></script><img src="data:image/png;base64,AA//">', False),
    ],
)
def test_what_comes_from_another_host_is_seen(file: str, text: str, is_foreign: bool, tmp_path: Path) -> None:
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    assert bool(list(foreign(tmp_path))) is is_foreign
