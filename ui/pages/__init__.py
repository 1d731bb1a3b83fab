"""The parts of the KV pages view."""
