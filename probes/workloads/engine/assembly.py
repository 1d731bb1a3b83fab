"""Puts a run together from its options: models, runners, engine, what it tells, its load and its server."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

import torch

from inspector.errors import Missing, Usage
from probes.inprocess import operators
from probes.inprocess.producer import from_environment
from probes.workloads.engine import memory
from probes.workloads.engine.arrivals import Arrivals, Prompts
from probes.workloads.engine.desk import Desk
from probes.workloads.engine.emit import Emitter
from probes.workloads.engine.engine import Engine, Settings
from probes.workloads.engine.loop import Limits, Load, Loop
from probes.workloads.engine.model import SHAPES, Decoder, load
from probes.workloads.engine.options import Options
from probes.workloads.engine.prompts import SYSTEM_PROMPTS
from probes.workloads.engine.records import Observer
from probes.workloads.engine.runner import LocalRunner, Runner
from probes.workloads.engine.server import Server
from probes.workloads.engine.stage import settle
from probes.workloads.engine.stages import StagesRunner
from probes.workloads.engine.statistics import Statistics
from probes.workloads.engine.tokens import Tokenizer


@dataclass(frozen=True)
class Run:
    """A run that is ready to begin."""

    loop: Loop
    url: str | None
    """Where it serves HTTP."""


def assemble(options: Options, complain: Callable[[str], None], stack: ExitStack) -> Run:
    """Make everything on this thread, which is to be the engine's; `stack` gives it all back.

    Raises Missing without the device or the memory, Usage for options that do not go together, LinkEnded when a stage
    fails.
    """
    torch.set_num_threads(options.threads)
    if options.device == "cuda" and not torch.cuda.is_available():
        raise Missing("--device cuda", "torch finds no CUDA device here", "use --device cpu")
    tokenizer = Tokenizer.load()
    target, draft = (_model(which, options) for which in ("target", "draft"))
    producer = from_environment("engine")
    observers: list[Observer] = []
    emitter = Emitter(producer, tokenizer, options.stages) if producer is not None else None
    if producer is not None and emitter is not None:
        stack.callback(producer.close)
        observers.append(emitter)
    statistics = Statistics(target.shape.positions, options.reuse)
    if options.port is not None:
        observers.append(statistics)
    settings = Settings(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Settings)})
    each = sum(model.shape.kv_bytes_per_token for model in (target, draft)) * options.tokens_per_block
    pages = options.host_blocks + (options.blocks if options.device == "cpu" else 0)
    memory.check(pages, pages * each)
    runner = _runner(target, options, stack)
    drafting = LocalRunner(draft, options.blocks, options.tokens_per_block, options.host_blocks)
    engine = Engine(settings, runner, drafting, observers)
    stack.callback(engine.close)
    prompts = Prompts(tokenizer, options.mix, options.prompt_tokens, options.seed)
    arrivals = Arrivals(options.arrivals, options.rate, prompts, options.output_tokens, options.seed)
    loop = Loop(
        engine,
        Load(arrivals, options.temperature, options.seed),
        Limits(options.seconds, options.requests),
        complain,
    )
    if emitter is not None:
        loop.changed = emitter.changed
    if producer is not None and options.operators != "none":
        capture = operators.start(producer, options.operators)
        stack.callback(capture.stop)
        loop.capture = capture
    if isinstance(runner, StagesRunner):
        runner.ready()
    url = _serve(options, tokenizer, statistics, loop, stack) if options.port is not None else None
    settle()
    return Run(loop, url)


def _model(which: str, options: Options) -> Decoder:
    if options.model == "trained":
        return load(which, options.device)
    torch.manual_seed(options.seed)
    return Decoder(SHAPES[which]).to(options.device).eval().requires_grad_(False)


def _runner(model: Decoder, options: Options, stack: ExitStack) -> Runner:
    pages = options.blocks, options.tokens_per_block, options.host_blocks
    if options.stages == 1:
        return LocalRunner(model, *pages)
    runner = StagesRunner(model, options.stages, options.micro_batches or options.stages, *pages, options.threads)
    stack.callback(runner.close)
    return runner


def _serve(options: Options, tokenizer: Tokenizer, statistics: Statistics, loop: Loop, stack: ExitStack) -> str:
    info = {"options": dataclasses.asdict(options), "backend": "inflight", "torch": torch.__version__}
    system = SYSTEM_PROMPTS["faq"] if options.model == "trained" else ""
    desk = Desk(loop.engine, tokenizer, statistics, f"inflight-{options.model}", system, info, loop.post)
    try:
        server = Server(desk, options.port or 0)
    except OSError as error:
        raise Usage(f"--port {options.port}", error.strerror or str(error), "choose another one, or 0") from None
    loop.desk = desk
    server.start()
    stack.callback(server.stop)
    return server.url
