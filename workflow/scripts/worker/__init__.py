"""What runs in a framework's environment, in the words of Python 3.6: standard library, numpy and the framework."""
