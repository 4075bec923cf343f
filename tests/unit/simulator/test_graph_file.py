"""Networks from files, and ``trainyard sim --network``."""

from __future__ import annotations

import json
from pathlib import Path

import networkx as nx
import pytest

from controller.cli.main import main
from simulator.errors import InputError
from simulator.graph_file import GraphFile, parse, read

TRACE = "3 3\n1 0 1 0 1 1:10\n2 0 1 2 1 1:10\n3 0 1 0 1 2:0\n"


def dumbbell(middle_bps: float) -> nx.Graph:
    """Host 1 on one side, 0 and 2 on the other."""
    graph = nx.Graph()
    graph.add_edges_from([("0", "left"), ("2", "left"), ("1", "right")])
    graph.add_edge("left", "right", rate_bps=middle_bps)
    return graph


def written(folder: Path, graph: nx.Graph, ending: str) -> Path:
    path = folder / f"network.{ending}"
    if ending == "graphml":
        nx.write_graphml(graph, path)
    else:
        path.write_text(json.dumps(nx.node_link_data(graph, edges="edges")))
    return path


def one_edge(rate: str) -> str:
    nodes, edge = '[{"id": "a"}, {"id": "b"}]', f'{{"source": "a", "target": "b", "rate_bps": {rate}}}'
    return f'{{"multigraph": false, "nodes": {nodes}, "edges": [{edge}]}}'


@pytest.mark.parametrize("ending", ["graphml", "json"])
def test_a_graph_is_read_as_it_was_written(tmp_path: Path, ending: str) -> None:
    graph = dumbbell(2.5e8)
    found = parse(read(written(tmp_path, graph, ending)))
    assert set(found) == set(graph)
    assert found.edges["left", "right"]["rate_bps"] == 2.5e8
    assert "rate_bps" not in found.edges["0", "left"]


def test_nodes_with_numbers_for_names_are_named_by_them() -> None:
    text = json.dumps(nx.node_link_data(nx.star_graph(3), edges="edges"))
    assert set(parse(GraphFile("x.json", text))) == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    ("source", "text", "wanted"),
    [
        ("x.txt", "", "ends in .graphml, .gml, .json"),
        ("x.json", "{\n  oops", "x.json:2: (whole file): a key in quotes should be here; this is no valid JSON"),
        ("x.json", '{"nodes": [],\n"nodes": []}', "x.json:2: nodes: given twice, first in line 1; keep one"),
        ("x.json", '{"nodes": [NaN]}', "x.json:1: nodes[0]: is NaN; it must be a finite number"),
        ("x.json", "[1, 2]", "not a graph"),
        ("x.json", '{"nodes": 3, "edges": []}', "not a graph"),
        ("x.json", '{"directed": true, "nodes": [], "edges": []}', "undirected"),
        ("x.json", '{"multigraph": true, "nodes": [], "edges": []}', "at most one edge"),
        (
            "x.json",
            '{"multigraph": false, "nodes": [{"id": 1}, {"id": "1"}], "edges": []}',
            "two nodes have the same name",
        ),
        (
            "x.json",
            one_edge("-1"),
            "edge a to b: rate_bps is -1",
        ),
        (
            "x.json",
            one_edge('"fast"'),
            "rate_bps is 'fast'",
        ),
        ("x.graphml", "<graphml>\n<nonsense", "x.graphml:2: not XML"),
        ("x.graphml", "<html/>", "not a graph"),
        ("x.gml", "graph [ node [ ] ]", "not a graph"),
    ],
)
def test_what_is_no_graph_is_refused_with_its_place(source: str, text: str, wanted: str) -> None:
    with pytest.raises(InputError, match=r"^x") as refused:
        parse(GraphFile(source, text))
    assert wanted in str(refused.value)


def sim(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: object) -> tuple[int, str, str]:
    (folder / "trace.txt").write_text(TRACE)
    given = ["sim", "--processes", "1", "--policy", "fair", "--trace", folder / "trace.txt", "--json", *arguments]
    status = main(list(map(str, given)))
    told = capsys.readouterr()
    return status, told.out, told.err


def test_a_network_whose_middle_is_wide_is_the_hose_model_and_a_narrow_one_is_slower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def ccts(*arguments: object) -> dict[str, float]:
        status, out, err = sim(capsys, tmp_path, *arguments)
        assert (status, err) == (0, "")
        ccts: dict[str, float] = json.loads(out)["per_coflow"]["fair"]
        return ccts

    hose = ccts()
    wide = ccts("--network", written(tmp_path, dumbbell(1e10), "graphml"))
    narrow = ccts("--network", written(tmp_path, dumbbell(2.5e8), "json"), "--html", tmp_path / "x.html")
    assert wide == pytest.approx(hose)
    # Both send 10 MB of 2^20 bytes to host 1, over its port or over the middle.
    assert hose["1"] == pytest.approx(20 * 2**20 * 8 / 1e9)
    assert narrow["1"] == pytest.approx(4 * hose["1"])
    assert "left--right" in (tmp_path / "x.html").read_text()


def test_a_network_that_does_not_fit_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lacking = dumbbell(1e9)
    lacking.remove_node("2")
    status, out, err = sim(capsys, tmp_path, "--network", written(tmp_path, lacking, "graphml"))
    assert (status, out) == (2, "")
    assert "network.graphml: host 2: it is not in the network's graph" in err
    assert sim(capsys, tmp_path, "--network", tmp_path / "none.gml")[0] == 2
    apart = dumbbell(1e9)
    apart.remove_edge("left", "right")
    status, _, err = sim(capsys, tmp_path, "--network", written(tmp_path, apart, "json"))
    assert status == 2
    assert "no path does" in err
