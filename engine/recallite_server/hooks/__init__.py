"""Hooks of coding agents: memories are stored and shown without a model's decision."""
