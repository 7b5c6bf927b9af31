"""The tests; folders mirror the source, `oracle` and `clients` hold the strangers' word."""
