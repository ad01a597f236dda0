"""Python imports this before anything else where this folder is on PYTHONPATH: it logs whom a process talks to.

One line for each call: the event and the host it is about, into the file that WITNESS_LOG names.
"""

import os
import sys
from typing import Any

ADDRESSED = ("socket.connect", "socket.sendto", "socket.bind")  # (socket, address)
NAMED = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr")  # (host, ...)


def note(event: str, arguments: tuple[Any, ...]) -> None:
    """Log an audit event that names a host; sockets that are files on this machine name none."""
    if event not in ADDRESSED and event not in NAMED:
        return
    about = arguments[1] if event in ADDRESSED else arguments[0]
    host = about[0] if isinstance(about, tuple) else about
    if event in ADDRESSED and not isinstance(about, tuple):
        return
    with open(os.environ["WITNESS_LOG"], "a", encoding="utf-8") as log:
        log.write(f"{event} {host}\n")


if "WITNESS_LOG" in os.environ:
    sys.addaudithook(note)
