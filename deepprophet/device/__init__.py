"""What measures this device: calibration, benchmarks, and the memory allocator."""
