"""Analyses: pure functions of (trace, window, options) whose figures have one definition each."""
