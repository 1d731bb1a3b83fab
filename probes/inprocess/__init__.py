"""What runs inside the workload: a guest. Standard library only; it never raises, never blocks, counts what it drops."""
