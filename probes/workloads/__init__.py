"""Workloads that this program can launch by itself."""
