"""The window: asks the trace questions and paints the answers. The only package that knows Qt."""
