"""The claim ``deepprophet``: predicted beside measured iteration times."""
