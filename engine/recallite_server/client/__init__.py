"""A client of `recallite serve`: the methods of `Memory`, asked of a server.

from recallite_server.client import Client

with Client("http://127.0.0.1:7333", token="rct_...") as memory:
memory.remember("Ada prefers green tea")
hits = memory.recall("What does Ada drink?")
"""

from recallite_server.client.asynchronous import AsyncClient
from recallite_server.client.synchronous import Client

__all__ = ["AsyncClient", "Client"]
