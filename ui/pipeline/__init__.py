"""The parts of the pipeline view."""
