"""A small but real inference engine: in-flight batching, paged KV cache, speculation, pipeline stages."""
