"""The Trace and what it is made of. Nothing here knows a file format, a figure or a screen."""
