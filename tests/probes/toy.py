"""Workloads for the tests of the recorder: small programs with a producer, told what to do by their arguments."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import threading
import time

from probes.inprocess.producer import Producer, from_environment

NEVER = -(2**63)


def say(producer: Producer, number: int) -> None:
    """One iteration with one request, its steps and a kernel."""
    thread = threading.get_native_id()
    now = time.monotonic_ns()
    producer.add("ranges", [(now, now + 10, thread, producer.name("step"), 2, -1)])
    producer.add("kernels", [(now, now + 5, 0, 7, producer.name("gemm"), number)])
    producer.add("iterations", [(now, now + 10, number, *[1] * 19)])
    arrival = (number, now, NEVER, NEVER, 5, -1, NEVER, NEVER, -1, 9, producer.name("faq"))
    producer.add("requests", [arrival])
    producer.add("steps", [(number, number, 2, 1, 0, 0, 1, 1, 1, -1)])
    finished = (number, now, now + 5, now + 6, 5, 1, now + 1, now + 7, 0, 9, producer.name("faq"))
    producer.add("requests", [finished])


def tell(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(what: str, *words: str) -> int:
    # The limit that stands in for a full disk is the recorder's alone.
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    producer = from_environment("toy")
    if what == "bare":
        tell("said it" if producer is None else "there is a ring")
        return 0
    assert producer is not None
    if what == "count":
        for number in range(int(words[0])):
            say(producer, number)
        tell("said it")
        sys.stderr.write("and to stderr\n")
        producer.close()
        return int(words[1]) if words[1:] and words[1].isdigit() else 0
    if what == "wait":
        # Says so many, then waits to be ended: politely, or not at all when it is deaf.
        stops = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        deaf = words[1:] == ("deaf",)
        if deaf:
            for each in stops:
                signal.signal(each, signal.SIG_IGN)
        else:
            signal.pthread_sigmask(signal.SIG_BLOCK, stops)
        for number in range(int(words[0])):
            say(producer, number)
        tell("ready", os.getpid())
        while deaf:
            signal.pause()
        tell("heard", signal.Signals(signal.sigwait(stops)).name)
        producer.close()
        return 3
    if what == "echo":
        tell("ready", os.getpid())
        for number, line in enumerate(sys.stdin):
            say(producer, number)
            tell("got", line.strip())
            if json.loads(line).get("stop"):
                break
        tell("end of input")
        producer.close()
        return 0
    if what == "on":
        # Goes on until the file is there, whoever listens.
        number = 0
        tell("ready", os.getpid())
        while not os.path.exists(words[0]):
            say(producer, number)
            number += 1
            time.sleep(0.001)
        producer.close()
        with open(words[0], "w") as file:
            file.write(f"{number} {producer.lost}")
        return 0
    raise SystemExit(what)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
