"""Callbacks for training frameworks and tuners, a module each: it imports its framework, and nothing else here does.

All stand on the two-line helper, so none raises into a training or makes it wait. See docs/frameworks.md.
"""
