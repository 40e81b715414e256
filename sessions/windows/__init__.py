"""What is different on Windows.

Rules for paths, kinds of programs and command lines (`names`, `programs`, `quoting`) are pure: nothing there asks the
system, so all of it is tested everywhere. What does ask it (`kernel`, `jobs`, `processes`, `locks`) is typed as on
Windows and was never run there.
"""
