"""Containers by podman, pods laid out as Kubernetes lays them out, and the DaemonSet that ships."""
