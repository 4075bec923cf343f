"""What a parameter server and its workers share: frames, peers, and connections."""
