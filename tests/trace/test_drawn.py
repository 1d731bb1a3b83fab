"""The drawings that other tests lean on mean what they say."""

from __future__ import annotations

import pytest

from inspector.trace.links import Links
from inspector.trace.work import Work
from tests.drawn import Slice, draw


def test_picture_of_the_design() -> None:
    drawn = draw("""
      gpu 0 stream 7   ...AAAA.....BB       L launch (links in order), S synchronise
      thread 1 calls   L....SSSSSL...
      expected                sssoo         s sync [7, 10), o launch overhead [10, 12)
    """)
    trace = drawn.trace
    assert trace["kernels"]["start"].tolist() == [3000, 12000]
    assert trace["kernels"]["end"].tolist() == [7000, 14000]
    assert [trace.names[n] for n in trace["host_calls"]["name"]] == [
        "cudaLaunchKernel",
        "cudaStreamSynchronize",
        "cudaLaunchKernel",
    ]
    assert trace.index(Links).launch["kernels"].tolist() == [0, 2]
    assert drawn.expected == {0: [Slice(7000, 10000, "s"), Slice(10000, 12000, "o")]}


def test_times_are_counted_from_the_first_record() -> None:
    drawn = draw(
        """
        gpu 1 stream 7   ....AA
        thread 1 calls   ..L...
        expected gpu 1   ...o..
        """,
        unit=10,
    )
    assert drawn.trace["kernels"]["start"].tolist() == [20]
    assert drawn.expected == {1: [Slice(10, 20, "o")]}
    assert drawn.at(4) == 20
    assert drawn.device(1) == 0


def test_processes_streams_and_letters_that_say_who_launched() -> None:
    drawn = draw(
        """
        gpu 0 stream 7                ....AAAA
        gpu 0 process 2 stream 7      ...B....
        gpu 1 stream 9                ..CCc0..
        thread 1 launches             ..A.....
        thread 2 launches             C.c.....
        thread 2 calls                ....Z...
        thread 1 process 2 calls      .L......
        """,
        kernels={"A": "gemm"},
    )
    trace = drawn.trace
    links = trace.index(Links).launch
    calls = trace["host_calls"]
    threads = trace["threads"]
    found = {
        trace.names[name]: (int(threads["process"][calls["thread"][call]]), int(threads["tid"][calls["thread"][call]]))
        for name, call in zip(trace["kernels"]["name"], links["kernels"], strict=True)
    }
    assert found == {"gemm": (0, 1), "B": (1, 1), "C": (0, 2)}
    assert trace.names[calls["name"][links["memcpys"][0]]] == "cudaMemcpyAsync"
    assert calls["start"][links["memcpys"][0]] == 2000
    assert calls["start"][links["memsets"][0]] == 4000
    assert trace["streams"]["number"].tolist() == [7, 7, 9]
    assert len(trace.index(Work).devices[drawn.device(1)]) == 3


def test_graph_nodes_share_their_launch() -> None:
    drawn = draw("""
        gpu 0 stream 7 graph 1   ..AA.A.....
        gpu 0 stream 9 graph 1   ..BB.......
        gpu 0 stream 7 graph 2   .......A...
        gpu 0 stream 7           .........##
        thread 1 calls           GG..G.G....       "GG" is one call, two long
    """)
    calls = drawn.trace["host_calls"]["start"]
    assert calls.tolist() == [0, 4000, 6000]
    kernels = drawn.trace["kernels"]
    assert kernels["graph_node"].all()
    links = drawn.trace.index(Links).launch
    assert calls[links["kernels"]].tolist() == [0, 0, 0, 4000]
    assert calls[links["graphs"]].tolist() == [6000]
    assert drawn.trace.index(Work).counted["graphs"].all()


def test_what_does_not_add_up_is_said() -> None:
    with pytest.raises(ValueError, match="nothing launches B in column 3"):
        draw("""
            gpu 0 stream 7   .A.B
            thread 1 calls   L...
        """)
    with pytest.raises(ValueError, match="column 2 launches nothing"):
        draw("""
            gpu 0 stream 7   .A.B
            thread 1 calls   LlL.
        """)
    with pytest.raises(ValueError, match="two blanks"):
        draw("gpu 0 stream 7 .A.B")
    with pytest.raises(ValueError, match="no row"):
        draw("nothing to see")
    drawn = draw("gpu 0 stream 7   .A.B", unlinked="AB")
    assert drawn.trace.index(Links).launch["kernels"].tolist() == [-1, -1]
