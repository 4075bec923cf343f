"""TensorBoard's event files: their records, a folder of them, and the folders of runs."""
