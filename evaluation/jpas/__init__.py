"""The claim ``jpas``: JPAS beside fair sharing at three loads."""
