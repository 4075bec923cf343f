"""Static configurations, from the settings, for switches and routers that serve queues by DSCP and take no rules."""
