"""The parts of the memory bandwidth view."""
