"""What the tests of several folders share: Maven's jars, Java programs, real brokers."""
