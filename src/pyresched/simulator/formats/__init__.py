"""Files of others that a simulation is made from: workload logs and records of node failures."""
