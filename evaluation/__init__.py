"""What the documentation claims, and how it is measured: claims, benches, and the demo."""
