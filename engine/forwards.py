"""How many models may read at once in one process, whatever the number of models and users."""

import threading

FORWARDS = threading.BoundedSemaphore(2)
