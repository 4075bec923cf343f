"""The claim ``beamer``: studies that end sooner."""
