"""What runs inside the workload, a guest: standard library only, never raises, never blocks, counts what it drops."""
