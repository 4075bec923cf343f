"""What a line, a row or a document of a training's output says: presets, recognition, counting. Pure."""
