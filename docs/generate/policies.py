"""The reference of the policies: what each one does, and its options."""

from __future__ import annotations

import inspect
from collections.abc import Mapping

from controller.policies.parts.options import describe
from controller.policies.registry import available
from docs.generate.markdown import code, prose, table
from docs.generate.schema import short_exponents


def reference(found: Mapping[str, type] | None = None) -> str:
    """Returns the Markdown, of all policies or of those given. Raises MissingTextError where a text is missing."""
    policies, options = [], []
    for name, policy in (available() if found is None else found).items():
        text = (inspect.getdoc(policy) or "").partition("\n\n")[0]
        policies.append([f"[`{name}`](#{_anchor(name)})", prose(" ".join(text.split()), f"the policy {name}")])
        for option in (describe(policy) or {}).values():
            subject = f"the option {option.name} of {name}"
            options.append(
                [
                    code(f"{name}.{option.name}"),
                    "required" if option.is_required else code(option.default_text),
                    short_exponents(prose(option.kind, subject)).removeprefix("a ").removeprefix("one of "),
                    prose(option.meaning, subject),
                ]
            )
    return table(["policy", "rule"], policies) + table(["option", "default", "values", "meaning"], options)


def _anchor(name: str) -> str:
    return "tensorlights-one-tensorlights-rr" if name.startswith("tensorlights") else name
