"""The call that puts a changed settings file in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus

from controller.api.http import Call, HttpError, Reply
from controller.api.services import Services
from controller.documents.mapping_file import ConfigError, Fault
from controller.refusals import Conflict
from controller.reload.difference import Change
from controller.reload.reloader import NoFileError
from controller.wire import ReloadAnswer, SettingChange


def post_reload(services: Services, call: Call) -> Reply:
    """Read the settings file again, and change what differs."""
    if services.reloader is None:
        raise Conflict("this controller cannot reload its settings")
    try:
        outcome = services.reloader.run(call.caller.name)
    except NoFileError as error:
        raise Conflict(str(error)) from error
    except ConfigError as error:
        faults = error.faults or (Fault("", None, None, str(error)),)
        raise HttpError(
            HTTPStatus.UNPROCESSABLE_ENTITY, f"nothing has changed: {error}", errors=list(map(_as_error, faults))
        ) from error
    services.journal.commit()
    return Reply.of(
        ReloadAnswer(
            sha256=outcome.sha256,
            loaded_at=outcome.loaded_at,
            changed=tuple(_on_the_wire(outcome.changed)),
            waiting=tuple(_on_the_wire(outcome.waiting)),
        )
    )


def _on_the_wire(changes: Iterable[Change]) -> Iterator[SettingChange]:
    return (SettingChange(field=change.field, before=change.before, after=change.after) for change in changes)


def _as_error(fault: Fault) -> dict[str, str]:
    named = {"file": fault.file, "line": fault.line, "field": fault.field, "detail": fault.problem}
    return {name: str(value) for name, value in named.items() if value}
