"""Callbacks for training frameworks and tuners. Each has a module, and only that module imports its framework.

All use the two-line helper, so none raises an exception into a training or delays it. See docs/frameworks.md.
"""
