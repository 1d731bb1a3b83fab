"""The parts of the speculation view."""
