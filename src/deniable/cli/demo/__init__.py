"""`deniable demo`: a collector, devices that report to it, questions, an attacker, a liar and a live stream."""
