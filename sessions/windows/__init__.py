"""Rules of Windows for paths, kinds of programs and command lines. Pure: nothing here asks the system, so all of it is
tested everywhere.
"""
