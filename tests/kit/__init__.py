"""What tests of several parts share: builders of values, strategies, checkers to run after a test."""
