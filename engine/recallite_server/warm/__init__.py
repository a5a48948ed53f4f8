"""One resident process of a user, which keeps stores, index and embedding model loaded for all others.

It answers what `recallite serve` answers, over a socket that only this user's processes reach. The command line,
`recallite mcp` and hooks ask it; whatever goes wrong with it, they open the store themselves.
"""
