"""Hooks of coding agents: memory that comes and goes without a model's decision."""
