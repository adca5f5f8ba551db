"""One module an aspect, strangers to each other: each compares wanted with live and writes into the draft."""
