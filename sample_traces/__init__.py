"""Simulated traces with the truth about every idle nanosecond; `python -m sample_traces.make_samples` writes them."""
