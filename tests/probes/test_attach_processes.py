"""Which server a process is: its ports in a /proc made by the test, and real processes with several of them."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from inspector.errors import Missing, Unreadable, Usage
from inspector.trace.quality import Quality
from probes.server_http import finding, processes
from probes.server_http.access import Access
from probes.server_http.finding import find, settings_of
from probes.server_http.loops import Loop
from probes.server_http.processes import Listener, clients_at, listeners_of, pid_at, shares_network
from tests.probes.stand_in_server import stand_in
from tests.waiting import processes as started
from tests.waiting import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")
HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
LOOPBACK, ANYWHERE, LAN = "0100007F", "00000000", "0502A8C0"
LOOPBACK6, ANYWHERE6 = "00000000000000000000000001000000", "0" * 32
MAPPED = "0000000000000000FFFF00000100007F"
LISTENS, ESTABLISHED = "0A", "01"


class Proc:
    """A /proc of the test."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def process(
        self, pid: int, sockets: Sequence[int] = (), parent: int = 1, name: str = "a) b", net: str = "one"
    ) -> None:
        folder = self.root / str(pid)
        for part in ("fd", "net", "ns"):
            (folder / part).mkdir(parents=True)
        for number, inode in enumerate(sockets):
            (folder / "fd" / str(number + 3)).symlink_to(f"socket:[{inode}]")
        (folder / "fd" / "0").symlink_to("/dev/null")
        (folder / "ns" / "net").symlink_to(f"net:[{net}]")
        (folder / "stat").write_text(f"{pid} ({name}) S {parent} 1 1 0")
        (folder / "comm").write_text(f"{name}\n")

    def tcp(self, pid: int | str, *lines: tuple[str, int, str, int, str, int], table: str = "tcp") -> None:
        text = HEAD
        for host, port, peer, peer_port, state, inode in lines:
            text += f"   0: {host}:{port:04X} {peer}:{peer_port:04X} {state} 00000000:00000000 00:00000000 00000000 "
            text += f"0 0 {inode} 1 0000 100 0 0 10 0\n"
        (self.root / str(pid) / "net" / table).write_text(text)


@pytest.fixture
def proc(tmp_path: Path) -> Proc:
    made = Proc(tmp_path / "proc")
    made.process(1)
    (made.root / "self").symlink_to("1")
    (made.root / "\u00b2").mkdir()
    (made.root / "meminfo").write_text("")
    return made


def test_where_a_process_listens(proc: Proc) -> None:
    proc.process(50, [7, 8, 9, 10])
    proc.tcp(
        50,
        (ANYWHERE, 8000, ANYWHERE, 0, LISTENS, 7),
        (LAN, 8001, ANYWHERE, 0, LISTENS, 8),
        (LOOPBACK, 8002, ANYWHERE, 0, LISTENS, 99),
        (LOOPBACK, 8003, LOOPBACK, 5000, ESTABLISHED, 9),
    )
    proc.tcp(
        50, (ANYWHERE6, 9000, ANYWHERE6, 0, LISTENS, 10), (LOOPBACK6, 9001, ANYWHERE6, 0, LISTENS, 7), table="tcp6"
    )
    assert listeners_of(50, proc.root) == [
        Listener("127.0.0.1", 8000),
        Listener("192.168.2.5", 8001),
        Listener("localhost", 9000),
        Listener("::1", 9001),
    ]


def test_children_are_looked_at_after_their_parent(proc: Proc) -> None:
    proc.process(50, [7])
    proc.process(51, [8], parent=50)
    proc.process(52, [9, 7], parent=51)
    proc.process(53, [10], parent=1)
    lines = [(LOOPBACK, 9000 - inode, ANYWHERE, 0, LISTENS, inode) for inode in (7, 8, 9, 10)]
    for pid in (50, 51, 52, 53):
        proc.tcp(pid, *lines)
    assert [port for _, port in listeners_of(50, proc.root)] == [8993, 8992, 8991]
    assert [port for _, port in listeners_of(51, proc.root)] == [8992, 8991, 8993]
    with pytest.raises(FileNotFoundError):
        listeners_of(4, proc.root)


@pytest.mark.parametrize("text", ["", "\n", HEAD + "x\n", HEAD + " ".join("?" * 12), HEAD + " ".join(["0:zz"] * 12)])
def test_tables_that_are_none(proc: Proc, text: str) -> None:
    proc.process(50, [7])
    (proc.root / "50" / "net" / "tcp").write_text(text)
    assert listeners_of(50, proc.root) == []


def test_whose_port_it_is_and_who_is_connected(proc: Proc) -> None:
    proc.process(50, [7, 20], name="trtllm-serve")
    proc.process(60, [30], name="prometheus\x1b[2J")
    proc.process(os.getpid(), [31])
    proc.tcp(
        1,
        (ANYWHERE, 8000, ANYWHERE, 0, LISTENS, 7),
        (LOOPBACK, 8000, LOOPBACK, 40000, ESTABLISHED, 20),
        (LOOPBACK, 40000, LOOPBACK, 8000, ESTABLISHED, 30),
        (LOOPBACK, 8000, LOOPBACK, 40001, ESTABLISHED, 21),
        (LOOPBACK, 40001, LOOPBACK, 8000, ESTABLISHED, 31),
        (LOOPBACK, 8000, LOOPBACK, 40002, ESTABLISHED, 22),
        (LOOPBACK, 40002, LOOPBACK, 8000, ESTABLISHED, 32),
        (LOOPBACK, 8000, LAN, 40003, ESTABLISHED, 23),
        (LOOPBACK, 8001, LAN, 40004, ESTABLISHED, 24),
    )
    proc.tcp(1, (MAPPED, 8000, MAPPED, 40005, ESTABLISHED, 25), table="tcp6")
    assert pid_at(8000, proc.root) == 50
    assert pid_at(8001, proc.root) == -1
    assert clients_at(8000, proc.root) == [
        "127.0.0.1",
        "192.168.2.5",
        "a process of another user",
        "prometheus\\x1b[2J (60)",
    ]
    assert clients_at(9999, proc.root) == []


def test_a_network_of_its_own_is_seen(proc: Proc) -> None:
    proc.process(50, net="one")
    proc.process(51, net="two")
    assert shares_network(50, proc.root)
    assert not shares_network(51, proc.root)


def test_a_process_in_a_network_of_its_own_is_told_of_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with stand_in():
        monkeypatch.setattr(processes, "shares_network", lambda pid: False)
        with pytest.raises(Unreadable, match="network of its own"):
            find(str(os.getpid()), Access())


_SERVER = """
import http.server, socket, sys, threading, time
class Fine(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        if self.path not in self.paths:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def do_HEAD(self):
        self.send_response(405 if self.path in self.paths else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()
    def log_message(self, *a): pass
silent = socket.create_server(("127.0.0.1", 0))
ports = [silent.getsockname()[1]]
for paths in sys.argv[1:]:
    handler = type("One", (Fine,), {"paths": paths.split(",")})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    ports.append(server.server_address[1])
print(*ports, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("paths", "which"),
    [
        (["/health", "/version,/metrics", "/other"], 2),
        (["/v2", "/metrics"], 2),
        (["/x"], 1),
        (["/x", "/y"], None),
        ([], None),
    ],
)
def test_of_several_ports_the_one_that_answers_as_a_server(
    paths: list[str], which: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "_PATIENCE_S", 1.0)
    with started() as start:
        process = start([sys.executable, "-IS", "-c", _SERVER, *paths])
        assert process.stdout is not None
        ports = list(map(int, process.stdout.readline().split()))
        if which is None:
            with pytest.raises(Unreadable, match="none of them answers"):
                find(str(process.pid), Access())
        else:
            found = find(str(process.pid), Access())
            assert (found.address.port, found.pid) == (ports[which], process.pid)


def test_a_shell_in_between_is_seen_through(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "_PATIENCE_S", 1.0)
    with started() as start:
        words = [sys.executable, "-IS", "-c", _SERVER, "/version"]
        process = start(["sh", "-c", '"$@"; true', "sh", *words])
        assert process.stdout is not None
        port = int(process.stdout.readline().split()[1])
        assert find(str(process.pid), Access()).address.port == port


def test_who_else_is_connected_is_told() -> None:
    with stand_in() as server, started() as start:
        code = f"import socket, sys; s = socket.create_connection(('127.0.0.1', {server.port}))\n"
        code += "print(1, flush=True); sys.stdin.read()"
        other = start([sys.executable, "-IS", "-c", code])
        assert other.stdout is not None
        other.stdout.readline()
        until(lambda: any(f"({other.pid})" in each for each in find(server.url, Access()).others))
        assert len(find(server.url, Access()).others) == 1


def serving(folder: Path, *options: str) -> list[str]:
    """A command line of trtllm-serve that waits for the end of its input."""
    program = folder / "trtllm-serve"
    program.write_text("import sys\nprint(1, flush=True)\nsys.stdin.read()\n")
    words = [sys.executable, "-IS", str(program), "serve", "a-model", *options]
    return ["sh", "-c", 'cd "$0" && exec "$@"', str(folder), *words]


@pytest.mark.parametrize(
    ("options", "file", "lag"),
    [
        ([], None, 1),
        (["--pp_size", "4"], None, 3),
        (["--pp_size=2", "--extra_llm_api_options", "more.yaml"], "pipeline_parallel_size: 3\n", 2),
        (["--extra_llm_api_options", "more.yaml"], "disable_overlap_scheduler: true\n", 0),
        (["--config", "more.yaml"], "max_batch_size: 8\n", 1),
        (["--config", "more.yaml"], "a: [", None),
        (["--config", "absent.yaml"], None, None),
        (["--backend", "tensorrt"], None, None),
    ],
)
def test_the_loop_is_known_from_the_command_line(
    options: list[str], file: str | None, lag: int | None, tmp_path: Path
) -> None:
    if file is not None:
        (tmp_path / "more.yaml").write_text(file)
    with started() as start:
        process = start(serving(tmp_path, *options))
        assert process.stdout is not None
        process.stdout.readline()
        loop = Loop(Quality())
        for settings in settings_of(process.pid):
            loop.learn(settings)
        assert loop.lag == lag
    assert settings_of(os.getpid()) == []


@pytest.mark.parametrize(
    ("settings", "record", "step"),
    [
        ({}, {}, 7),
        ({}, {"schedulerMode": "overlap"}, 6),
        ({}, {"schedulerMode": "non_overlap"}, 7),
        ({}, {"schedulerMode": ["overlap"]}, 7),
        ({"args": [{"pp_size": 3}]}, {"schedulerMode": "overlap"}, 5),
        ({"pp_size": "2", "disable_overlap_scheduler": True}, {}, 6),
        ({"disable_overlap_scheduler": False}, {}, 6),
        ({"disable_overlap_scheduler": True}, {}, 7),
        ({"pp_size": 1}, {}, 7),
        ({"pp_size": 9999999}, {}, 7),
        ({"disable_overlap_scheduler": "no"}, {}, 7),
    ],
)
def test_records_are_joined_to_the_steps_of_each_loop(
    settings: dict[str, object], record: dict[str, object], step: int
) -> None:
    quality = Quality()
    loop = Loop(quality)
    loop.learn(settings)
    assert loop.step(7, record) == loop.step(7, record) == step
    is_known = record.get("schedulerMode") in ["overlap", "non_overlap"]
    assert quality.count("assumed") == int(not is_known and loop.lag is None)
    assert loop.step(0, record) == 0


def test_settings_that_are_deep_or_wide_are_bounded() -> None:
    loop = Loop(Quality())
    deep: object = {"pp_size": 8}
    for _ in range(100_000):
        deep = {"a": deep}
    loop.learn(deep)
    assert loop.lag is None


def test_impossible_targets() -> None:
    with pytest.raises(Usage, match="no process"):
        find("4194303", Access())
    for text in ("\u00b2", "9" * 5000):
        with pytest.raises(Usage):
            find(text, Access())


def test_a_process_of_another_user_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(pid: int) -> list[Listener]:
        raise PermissionError

    monkeypatch.setattr(processes, "listeners_of", refuse)
    with pytest.raises(Missing, match="another user's"):
        find("1", Access())


def test_a_port_that_hangs_up_is_no_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finding, "_PATIENCE_S", 1.0)
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

        def hang_up() -> None:
            while True:
                try:
                    listening.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        monkeypatch.setattr(processes, "listeners_of", lambda pid: [Listener("127.0.0.1", listening.getsockname()[1])])
        with pytest.raises(Unreadable, match="none of them answers"):
            find("1", Access())
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)
    assert not thread.is_alive()
