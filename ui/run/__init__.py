"""Parts of the Run view: the recorder as a child process, what it is started with, told, and what it says."""
