"""Two chats at once on one event loop, each with its own history and memory, in one file.

Each user has a scoped handle, which cannot see what the other said.

Output:

    ada> My build breaks on Python 3.13
         Noted.
    ada> I prefer short answers
         Noted.
    ada> Which Python does my build break on?
         You said: My build breaks on Python 3.13
    bob> I deploy to Frankfurt
         Noted.
    bob> My exporter runs at night
         Noted.
    bob> Which Python does my build break on?
         I don't know that.
    [('/users/ada', 6), ('/users/bob', 6)]
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from recallite import AsyncMemory

CHATS = {
    "ada": ["My build breaks on Python 3.13", "I prefer short answers", "Which Python does my build break on?"],
    "bob": ["I deploy to Frankfurt", "My exporter runs at night", "Which Python does my build break on?"],
}


async def chat(memory: AsyncMemory, user: str) -> list[str]:
    """Hold one user's conversation: remember statements, answer questions from memory."""
    user_memory = memory.scoped(f"/users/{user}")
    session = await user_memory.sessions.open("today")
    transcript = []
    for message in CHATS[user]:
        if message.endswith("?"):
            hits = await user_memory.recall(message, relevant=True)
            reply = f"You said: {hits[0].text}" if hits else "I don't know that."
        else:
            await user_memory.remember(message, source="today")
            reply = "Noted."
        # Both messages are stored, or none.
        await session.extend([{"role": "user", "content": message}, {"role": "assistant", "content": reply}])
        transcript.append(f"{user}> {message}\n{' ' * len(user)}  {reply}")
    return transcript


async def main() -> None:
    """Run the chats at the same time, then count what was stored."""
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncMemory(Path(folder, "chat.db")) as memory:
            for transcript in await asyncio.gather(*(chat(memory, user) for user in CHATS)):
                print("\n".join(transcript))
            print([(info.scope, info.messages) for info in sorted(await memory.sessions.list(), key=lambda s: s.scope)])


if __name__ == "__main__":
    asyncio.run(main())
