"""What a running server tells over HTTP in the shapes of trtllm-serve, polled and joined into tables of a recording.

Reading /metrics, /kv_cache_events and /perf_metrics takes the records away from other readers: the server gives each
out once. All that comes is read without trust: keys may be absent, null, or 0 where they are not filled.
"""
