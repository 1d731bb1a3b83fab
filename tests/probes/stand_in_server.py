"""A server that answers as one of TensorRT-LLM's generations does, with the faults that one tells it to have."""

from __future__ import annotations

import datetime
import json
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, bytes]


class StandIn:
    """`answers` by 'METHOD /path': each request takes the next, the last one stays; callables are called."""

    def __init__(self) -> None:
        self.answers: dict[str, deque[Answer | Callable[[Any], None]]] = {}
        self.asked: deque[str] = deque()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def say(self, what: str, *answers: object, status: int = 200, then: object = ()) -> None:
        """Answer so, one after the other, then for ever with `then` (an empty array)."""
        queue = self.answers.setdefault(what, deque())
        for answer in (*answers, list(then) if then == () else then):
            if callable(answer):
                queue.append(answer)
            else:
                queue.append((status, answer if isinstance(answer, bytes) else json.dumps(answer).encode()))

    def next(self, what: str) -> Answer | Callable[[Any], None]:
        self.asked.append(what)
        queue = self.answers.get(what)
        if not queue:
            return 404, b'{"error": "not found"}'
        return queue.popleft() if len(queue) > 1 else queue[0]

    def count(self, what: str) -> int:
        return sum(each == what for each in list(self.asked))


@contextmanager
def stand_in(port: int = 0) -> Iterator[StandIn]:
    told = StandIn()
    connections: list[socket.socket] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            connections.append(self.connection)

        def _answer(self) -> None:
            found = told.next(f"{self.command} {self.path}")
            if callable(found):
                found(self)
                return
            status, body = found
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = _answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # a client that hangs up

    server = Quiet(("127.0.0.1", port), Handler)
    told.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


def stamp(epoch_s: float | None = None) -> str:
    moment = datetime.datetime.fromtimestamp(time.time() if epoch_s is None else epoch_s)
    return moment.strftime("%m-%d-%Y %H:%M:%S.%f")


def pytorch(iteration: int, **more: Any) -> dict[str, Any]:
    """As the PyTorch backend of 1.2 tells an iteration: hard zeros where it measures nothing."""
    cache = {
        "maxNumBlocks": 100,
        "freeNumBlocks": 60,
        "usedNumBlocks": 40,
        "tokensPerBlock": 32,
        "allocTotalBlocks": 500,
        "allocNewBlocks": 450,
        "reusedBlocks": 10 * iteration,
        "missedBlocks": 3 * iteration,
        "cacheHitRate": 0.7,
    }
    return {
        "timestamp": stamp(),
        "iter": iteration,
        "iterLatencyMS": 12.5,
        "newActiveRequestsQueueLatencyMS": 0.0,
        "numNewActiveRequests": 1,
        "numActiveRequests": 4,
        "numQueuedRequests": 2,
        "numCompletedRequests": 1,
        "maxNumActiveRequests": 64,
        "maxBatchSizeStatic": 0,
        "maxBatchSizeRuntime": 0,
        "maxNumTokensStatic": 0,
        "maxNumTokensRuntime": 0,
        "gpuMemUsage": 70_000_000_000,
        "cpuMemUsage": 0,
        "pinnedMemUsage": 0,
        "kvCacheStats": cache,
        "staticBatchingStats": {"numScheduledRequests": 0, "numContextRequests": 0, "numCtxTokens": 0},
        "inflightBatchingStats": {
            "numScheduledRequests": 4,
            "numContextRequests": 1,
            "numGenRequests": 3,
            "numPausedRequests": 0,
            "numCtxTokens": 128,
            "microBatchId": 0,
            "avgNumDecodedTokensPerIter": 0,
        },
        "specDecodingStats": None,
        **more,
    }


def tensorrt(iteration: int) -> dict[str, Any]:
    """As the C++ backend of 1.0 tells it: other sections, real limits, null where it has nothing."""
    return {
        **pytorch(iteration),
        "maxBatchSizeStatic": 64,
        "maxBatchSizeRuntime": 32,
        "maxNumTokensRuntime": 8192,
        "cpuMemUsage": 1_000_000,
        "pinnedMemUsage": 2_000_000,
        "crossKvCacheStats": None,
        "staticBatchingStats": None,
    }


def later(iteration: int) -> dict[str, Any]:
    """As later ones tell it: figures per iteration and window, ranks, what nobody knows yet."""
    window = {
        "iterReusedBlocks": 4,
        "iterMissedBlocks": 1,
        "primaryEvictableNumBlocks": 20,
        "secondaryUsedNumBlocks": 5,
        "iterOffloadBytes": 4096,
    }
    return {
        **pytorch(iteration),
        "attentionDpRank": 0,
        "hostStepTimeMS": 3.2,
        "schedulerMode": "overlap",
        "kvCacheIterationStats": {"4096": window, "512": window},
        "specDecodingStats": {"numDraftTokens": 12, "numAcceptedTokens": 7, "acceptanceLength": 3.3},
        "requestStats": [
            {"id": 1, "stage": "GENERATION_IN_PROGRESS", "scheduled": True, "disServingStats": None},
            {"id": 2, "stage": "QUEUED", "scheduled": False},
        ],
        "somethingNew": [{"a": 1}],
    }
