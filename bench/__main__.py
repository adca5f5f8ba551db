"""Run all benchmarks in sequence."""

from bench import large_house, ledger, whole_way

if __name__ == "__main__":
    whole_way.report()
    print()
    ledger.report()
    print()
    large_house.report()
