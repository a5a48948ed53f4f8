"""The map of memories: a projection of the stored vectors onto a plane, computed in a child process and kept."""
