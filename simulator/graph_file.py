"""A network's graph from a file: GraphML, GML, or networkx's node-link JSON, by the file's ending.

Nodes are hosts (by the names that the workload gives them) and switches; an edge's ``rate_bps`` is its rate each way in
bit/s, needless where the edge is a host's only one (see ``simulator.network.Graph``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

import networkx as nx

from controller.documents import json_lines, text_file
from controller.documents.document import DocumentError, field_name
from simulator.errors import InputError


def _from_json(text: str) -> Any:
    return nx.node_link_graph(json_lines.parse(text), edges="edges")


_READERS: Mapping[str, Callable[[str], Any]] = {
    ".graphml": nx.parse_graphml,
    ".gml": nx.parse_gml,
    ".json": _from_json,
}


@dataclass(frozen=True, slots=True)
class GraphFile:
    """A graph's text, so that whoever simulates on it needs no file; ``source`` is what errors call it."""

    source: str
    text: str


def read(path: Path) -> GraphFile:
    """The text of a graph's file. Raises InputError where it cannot be read or is no graph."""
    try:
        file = GraphFile(text_file.name(path), text_file.read(path, holds="a graph"))
    except text_file.FileError as error:
        raise InputError(str(error)) from None
    parse(file)
    return file


@lru_cache(maxsize=1)
def parse(file: GraphFile) -> nx.Graph[str]:
    """The graph, with names of nodes as text. Raises InputError."""
    ending = Path(file.source.lower().removesuffix(".gz")).suffix
    if ending not in _READERS:
        raise InputError(f"{file.source}: a graph's file ends in {', '.join(_READERS)}")
    try:
        parsed = _READERS[ending](file.text)
    except DocumentError as error:
        raise InputError(f"{file.source}:{error.line}: {field_name(error.path)}: {error.problem}") from None
    except ParseError as error:
        raise InputError(f"{file.source}:{error.position[0]}: not XML: {error.msg}") from None
    except (nx.NetworkXException, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InputError(f"{file.source}: not a graph in the format that {ending} stands for: {error}") from None
    if parsed.is_directed() or parsed.is_multigraph():
        raise InputError(f"{file.source}: the graph must be undirected, with at most one edge between two nodes")
    graph: nx.Graph[str] = nx.relabel_nodes(parsed, {node: str(node) for node in parsed})
    if len(graph) != len(parsed):
        raise InputError(f"{file.source}: two nodes have the same name")
    for first, second, attributes in graph.edges(data=True):
        rate = attributes.get("rate_bps")
        if rate is not None and not _is_rate(rate):
            raise InputError(
                f"{file.source}: edge {first} to {second}: rate_bps is {rate!r}; it must be a number above 0"
            )
    return graph


def _is_rate(rate: object) -> bool:
    return isinstance(rate, int | float) and not isinstance(rate, bool) and 0 < rate < math.inf
