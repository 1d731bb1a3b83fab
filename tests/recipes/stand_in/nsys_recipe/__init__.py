"""What the documentation says of the package that recipes import, and no more: nsys' own was never run for this."""
