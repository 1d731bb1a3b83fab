"""What is known of a model and of how its server was set: read from files, each value with where it stands.

Files are those of Hugging Face, of TensorRT-LLM's engines, and of its options. What no file says stays unknown.
"""
