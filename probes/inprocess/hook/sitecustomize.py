"""Runs at the start of every Python of a recorded workload: arms a watch for the modules that the probes are for.

Python imports the first `sitecustomize` that it finds, so the one that this hides (the system's, the user's) is run
after it. Nothing here may be felt by the workload: not in time, not in names, not in errors. Written so that a Python
of any age reads it, Python 2 as well.
"""


def _arm():
    # type: () -> None
    import importlib.util
    import os
    import sys

    wanted = os.environ.get("TLLM_INSPECTOR_RUN") or os.environ.get("TLLM_INSPECTOR_STANDBY")
    if not wanted or "_inflight_guest" in sys.modules:
        return
    # Under a name of its own: a user's `probes` is never shadowed, nor ours by it.
    folder = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    init = os.path.join(folder, "__init__.py")
    spec = importlib.util.spec_from_file_location("_inflight_guest", init, submodule_search_locations=[folder])
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["_inflight_guest"] = module
    spec.loader.exec_module(module)
    importlib.import_module("_inflight_guest.watch").arm()


def _run_hidden():
    # type: () -> None
    import os
    import sys

    here = os.path.dirname(os.path.abspath(__file__))
    elsewhere = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    try:
        import importlib.machinery
        import importlib.util
    except ImportError:  # Python 2
        _run_hidden_of_old(elsewhere)
        return
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", elsewhere)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


def _run_hidden_of_old(elsewhere):
    # type: (list[str]) -> None
    imp = __import__("imp")
    try:
        found = imp.find_module("sitecustomize", elsewhere)
    except ImportError:
        return
    imp.load_module("sitecustomize", *found)


# Without the probe, and without a word: a broken installation of ours is no business of the workload.
try:
    _arm()
except (
    ImportError,
    OSError,
    AttributeError,
    SyntaxError,
    TypeError,
    ValueError,
    RuntimeError,
    LookupError,
    MemoryError,
):
    _armed = False
_run_hidden()
