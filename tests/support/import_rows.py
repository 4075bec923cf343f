"""A kind of contract for import-linter, a row of the table of rooms: what is here may import of ours only that.

``importers`` may import each other and ``may_import``, each with all that is inside it; nothing else of the root
packages. What is new in the tree is so refused until a row allows it. Libraries are the other contracts' business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


class Row(Contract):
    """Configuration: ``importers`` and ``may_import``, lists of modules; the latter may be left out."""

    type_name = "row"

    importers: Any = fields.ListField(subfield=fields.ModuleField())
    may_import: Any = fields.ListField(subfield=fields.ModuleField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Kept if nothing inside the importers imports anything of ours that is not allowed."""
        importers = {module.name for module in self.importers}
        allowed = importers | {module.name for module in self.may_import or ()}
        for name in allowed - graph.modules:
            raise ValueError(f"{name} is not there; the row names what is gone or misspelt")
        roots = {name.partition(".")[0] for name in self.session_options["root_packages"]}
        wrong = [
            (importer, imported)
            for importer in sorted(graph.modules)
            if _is_in(importer, importers)
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if imported.partition(".")[0] in roots and not _is_in(imported, allowed)
        ]
        return ContractCheck(kept=not wrong, metadata={"wrong": wrong})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """One line an import."""
        for importer, imported in check.metadata["wrong"]:
            output.print_error(f"{importer} may not import {imported}", bold=False)


def _is_in(name: str, rooms: Iterable[str]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)
