"""The asset commands of the simulator."""
