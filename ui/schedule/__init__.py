"""The parts of the schedule view."""
