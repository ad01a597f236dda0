"""A reader without a browser: one websocket that speaks Streamlit's own messages and counts what comes back.

It keeps what the browser keeps, so that bytes are counted as a browser would get them: messages sent before come
back as a reference of some bytes, and a change of one widget is sent alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect

# The browser forgets a message that two runs in a row did without (global.maxCachedMessageAge).
REMEMBERED_RUNS = 2
LARGEST_MESSAGE = 64_000_000


@dataclass
class Reply:
    """What one run of the script sent.

    Attributes:
        milliseconds: from the request leaving to the message that the script has finished.
        nbytes: of all websocket frames in between.
        kinds: bytes by kind of element and key, for finding what is heavy.
    """

    milliseconds: float = 0.0
    nbytes: int = 0
    kinds: dict[str, int] = field(default_factory=dict)


@dataclass
class Reader:
    """One session; widgets and pieces are found by the key that the app gives them."""

    socket: ClientConnection
    ids: dict[str, str] = field(default_factory=dict)
    texts: list[str] = field(default_factory=list)
    _runs: int = 0
    _seen: dict[str, int] = field(default_factory=dict)
    _page: str = ""
    _address: str = ""

    async def open(self) -> Reply:
        """Run the script for the first time."""
        return await self._rerun()

    async def type(self, key: str, text: str) -> Reply:
        """Type into a text box and press Enter."""
        return await self._rerun(WidgetState(id=self.ids[key], string_value=text))

    async def choose(self, key: str, label: str) -> Reply:
        """Click one option of a segmented control, by the label it shows."""
        state = WidgetState(id=self.ids[key])
        state.string_array_value.data.append(label)
        return await self._rerun(state)

    async def pick(self, key: str, pick: Mapping[str, int]) -> Reply:
        """Click in one of the app's own browser pieces."""
        event = json.dumps([{"event": "pick", "value": dict(pick)}])
        name = f"$$STREAMLIT_INTERNAL_KEY_{self.ids[key]}__events"
        return await self._rerun(WidgetState(id=name, json_trigger_value=event))

    def says(self, text: str) -> bool:
        """Tell whether the last run wrote this text anywhere on the page."""
        return any(text in written for written in self.texts)

    async def _rerun(self, *changed: WidgetState) -> Reply:
        request = BackMsg()
        state = request.rerun_script
        state.query_string, state.page_script_hash = self._address, self._page
        state.widget_states.widgets.extend(changed)
        state.cached_message_hashes.extend(self._remembered())
        self.texts = []
        reply, sent = Reply(), request.SerializeToString()
        began = time.perf_counter()
        await self.socket.send(sent)
        while True:
            frame = await self.socket.recv()
            message = ForwardMsg.FromString(frame)
            reply.nbytes += len(frame)
            if message.WhichOneof("type") == "script_finished":
                reply.milliseconds = (time.perf_counter() - began) * 1000
                if message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY:
                    break
            self._take(message, len(frame), reply)
        self._runs += 1
        return reply

    def _remembered(self) -> list[str]:
        self._seen = {name: run for name, run in self._seen.items() if self._runs - run <= REMEMBERED_RUNS}
        return list(self._seen)

    def _take(self, message: ForwardMsg, size: int, reply: Reply) -> None:
        if message.metadata.cacheable:
            self._seen[message.hash] = self._runs
        kind: str = message.WhichOneof("type") or ""
        if kind == "ref_hash":
            self._seen[message.ref_hash] = self._runs
        elif kind == "navigation":
            self._page = message.navigation.page_script_hash
        elif kind == "page_info_changed":
            self._address = message.page_info_changed.query_string
        elif message.delta.HasField("new_element"):
            kind = self._note(message.delta.new_element)
        reply.kinds[kind] = reply.kinds.get(kind, 0) + size

    def _note(self, element: Any) -> str:
        """Remember a widget's id by its key and a text's words, and name the element's kind."""
        kind: str = element.WhichOneof("type")
        made = getattr(element, kind)
        if kind == "markdown":
            self.texts.append(made.body)
        identity = getattr(made, "id", "")
        if isinstance(identity, str) and identity:
            key = identity.split("-", 2)[-1]
            self.ids[key] = identity
            return f"{kind} {key}"
        return kind


@asynccontextmanager
async def reader(url: str) -> AsyncIterator[Reader]:
    """Open a session at the app's address; it has run nothing yet."""
    address = f"ws{url.removeprefix('http')}/_stcore/stream"
    async with connect(address, max_size=LARGEST_MESSAGE, compression=None) as socket:
        yield Reader(socket)
