"""Two kinds of contract for import-linter: what each room may import of ours, and who may import a library.

A room is a package or a module with all that is inside it; the most specific room that is named counts. What is new in
the tree is refused until a line of the table allows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class Rooms(Contract):
    """Each line of ``table`` is ``ROOM: WHAT IT MAY IMPORT``. Modules of one room may import each other.

    What a line names includes all that is inside it. A top package without a line may import nothing of ours. Imports
    between rooms have no cycle, whatever the lines allow. In a top package's own room, each folder or module at its top
    counts as one for this.
    """

    type_name = "rooms"

    table: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept if every import between rooms is allowed by the line of the importer."""
        table = _read(self.table)
        for name in {*table, *(name for names in table.values() for name in names)} - graph.modules:
            raise ValueError(f"{name} is not there; the table names what is gone or misspelt")
        roots = {name.partition(".")[0] for name in self.session_options["root_packages"]}
        wrong = []
        for importer in sorted(graph.modules):
            if importer.partition(".")[0] not in roots:
                continue
            room = _room(importer, table)
            if room is None and importer not in roots:
                wrong.append(f"{importer} is in no room of the table")
            wrong += [
                f"{importer} may not import {imported}"
                for imported in sorted(graph.find_modules_directly_imported_by(importer))
                if imported.partition(".")[0] in roots
                and (room is None or _room(imported, table) != room)
                and not _is_in(imported, table.get(room or "", ()))
            ]
        cycle = _cycle(graph, table, roots)
        if cycle:
            wrong.append(f"these rooms import each other in a cycle: {', '.join(cycle)}")
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line an import."""
        for line in check.metadata["wrong"]:
            output.print_error(line, bold=False)


class Libraries(Contract):
    """Each line of ``table`` is ``LIBRARY ...: WHO MAY IMPORT IT``; other modules of ours may not."""

    type_name = "libraries"

    table: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept if each library is imported by those alone that its line names."""
        wrong = []
        for libraries, importers in _read(self.table).items():
            for name in importers:
                if name not in graph.modules:
                    raise ValueError(f"{name} is not there; the table names what is gone or misspelt")
            for library in libraries.split():
                if library not in graph.modules:
                    continue
                wrong += [
                    f"{importer} may not import {library}"
                    for importer in sorted(graph.find_modules_that_directly_import(library))
                    if not _is_in(importer, importers)
                ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line an import."""
        for line in check.metadata["wrong"]:
            output.print_error(line, bold=False)


def _cycle(graph: ImportGraph, table: Mapping[str, tuple[str, ...]], roots: Collection[str]) -> list[str]:
    """Returns the rooms of a cycle of imports, in order, the first one again at the end; empty where there is none."""

    def room(module: str) -> str:
        own = _room(module, table)
        return own if own is not None and own not in roots else ".".join(module.split(".")[:2])

    imports: TopologicalSorter[str] = TopologicalSorter()
    for importer in sorted(graph.modules):
        for imported in graph.find_modules_directly_imported_by(importer):
            if imported.partition(".")[0] in roots and room(imported) != room(importer):
                imports.add(room(importer), room(imported))
    try:
        imports.prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _read(table: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    return dict(_lines(table))


def _lines(table: Iterable[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for line in table:
        left, colon, right = line.partition(":")
        if not colon:
            raise ValueError(f"{line!r} has no colon")
        yield left.strip(), tuple(right.split())


def _room(module: str, table: Mapping[str, tuple[str, ...]]) -> str | None:
    return max((room for room in table if _is_in(module, (room,))), key=len, default=None)


def _is_in(name: str, rooms: Iterable[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)
