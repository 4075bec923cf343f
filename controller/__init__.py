"""The Trainyard controller: from what hosts report to the order that switches and hosts enforce."""
