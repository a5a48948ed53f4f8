"""Recallite as the store, session or memory of agent frameworks: a module for each, which imports its package."""
