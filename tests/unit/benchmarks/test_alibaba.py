"""The benchmark on the real cluster: it reads what is there, and places as plain best fit does."""

from random import Random

import pytest

import alibaba
from kit.shared import shared_path
from pyresched.model import ResourceVector

NODES = "sn,cpu_milli,memory_mib,gpu,model\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)


@pytest.fixture
def folder(tmp_path):
    """Twelve nodes of three kinds, and more pods than they take, not in order of arrival."""
    draw = Random(7)
    kinds = [(32000, 65536, 0, ""), (64000, 262144, 2, "P100"), (96000, 393216, 8, "G2")]
    nodes = [f"node-{n:02},{','.join(map(str, kinds[n % 3]))}" for n in range(12)]
    pods = []
    for n in range(400):
        gpus, thousandths = draw.choice([(0, 0), (1, 460), (1, 1000), (2, 1000)])
        models = draw.choice(["", "", "P100", "P100|G2"]) if gpus else ""
        cores, memory = draw.randrange(1, 9) * 1000, draw.randrange(1, 9) * 2048
        arrival = draw.randrange(1000)
        pods.append(
            f"pod-{n:03},{cores},{memory},{gpus},{thousandths},{models},LS,Running,{arrival},9,9"
        )
    (tmp_path / "openb_node_list_all_node.csv").write_text(NODES + "\n".join(nodes))
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS + "\n".join(pods))
    return tmp_path


def test_ours_places_each_pod_where_plain_best_fit_does(folder):
    """Models and all; some of the pods find no room."""
    nodes, pods = alibaba.read_nodes(folder), alibaba.read_pods(folder)
    fork, refused = alibaba.ours(nodes, pods)
    plain = alibaba.in_python(nodes, pods, alibaba.plain_fit)
    assert {name: fork.node_of(name) for name in fork.table.bound_jobs()} == plain
    assert sum(refused.values()) == len(pods) - len(plain) > 0
    assert alibaba.faults(nodes, pods, fork) == []
    assert alibaba.in_python(nodes, pods, alibaba.dominant_fit) != plain


def test_it_says_how_many_and_why_not(folder, capsys):
    """With status 0."""
    assert alibaba.main([str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "400 pods on 12 nodes" in printed
    assert "refused: insufficient_resources" in printed
    assert "plain best fit" in printed


def test_pods_arrive_in_order(folder):
    """Not in that of the file."""
    names = [pod.name for pod in alibaba.read_pods(folder)]
    assert len(names) == 400
    assert names != sorted(names)


def test_less_than_plain_best_fit_is_a_failure(folder, monkeypatch, capsys):
    """Negative control, as are the next two."""
    real = alibaba.ours
    monkeypatch.setattr(alibaba, "ours", lambda nodes, pods: real(nodes, pods[:50]))
    assert alibaba.main([str(folder)]) == 1
    assert "placed; plain best fit places" in capsys.readouterr().out


def test_too_much_on_a_node_is_a_fault(folder):
    """Nodes that are half of what they were have given more than they have."""
    nodes, pods = alibaba.read_nodes(folder), alibaba.read_pods(folder)
    fork, _ = alibaba.ours(nodes, pods)
    halved = [alibaba.Node(id=n.id, total=ResourceVector([a // 2 for a in n.total])) for n in nodes]
    found = alibaba.faults(halved, pods, fork)
    assert any("and gave" in each for each in found)
    assert any("of another model" in each for each in found)


@pytest.mark.parametrize(
    ("file", "text", "says"),
    [
        ("openb_node_list_all_node.csv", "sn,cpu\nn,1\n", "KeyError"),
        ("openb_pod_list_default.csv", PODS + "p,one,1,1,1,,,,1,1,1\n", "ValueError"),
        ("openb_pod_list_default.csv", None, "name the folder of the data"),
    ],
    ids=["columns", "numbers", "missing"],
)
def test_data_that_cannot_be_used_is_one_line(folder, capsys, file, text, says):
    """With status 2."""
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text)
    assert alibaba.main([str(folder)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert file in line
    assert says in line


def test_all_pods_of_the_real_cluster():
    """Nearly all find a node, the others lack GPUs; nothing is given twice."""
    folder = shared_path("data", "alibaba_gpu2023")
    nodes, pods = alibaba.read_nodes(folder), alibaba.read_pods(folder)
    assert (len(nodes), len(pods)) == (1523, 8152)
    fork, refused = alibaba.ours(nodes, pods)
    assert len(fork.table.bound_jobs()) == 7866
    assert refused == {"insufficient_resources gpu": 286}
    assert alibaba.faults(nodes, pods, fork) == []
