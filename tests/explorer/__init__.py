# SPDX-License-Identifier: Apache-2.0
"""The explorer: the real protocol code, driven through every order in which its transactions can happen.

Use it:

    pytest tests/explorer                      every case and every mistake, ten minutes of a core
    pytest tests/explorer -m "not long"        the small cases and the mistakes, as tools/test does: a minute and a half
    python -m tests.explorer                   the cases as a table: states, transitions, runs, seconds
    python -m tests.explorer NAME...           some of them; a violation is printed as a story
    python -m tests.explorer --mistakes        what each re-introduced mistake leads to, told step by step

How it works. A case (cases.py) is a set of books, and actors that run the code which runs in production: schedulers
with their placers, conductors with their build tasks, computes that consume, a reaper. Each actor stops
before each of its transactions. Only one takes a step at a time, so a schedule is a list of choices: who is next, who
dies, which of several equal hosts is picked. The search (search.py) tries all of them depth first, each time from the
beginning, since running code cannot be copied; it turns back where it comes to a state that it has been in, told by
the tables' contents and by what each actor remembers (memory.py). After each step the rules (rules.py) look at the
books with a replay of their own, written from the design and not from the code.

A rule that is broken stops the search with the story of that one schedule. mistakes.py breaks the protocol in the six
ways that its design warns of (and one more), and a test demands that each be caught.

To add a case, write its books and actors in cases.py. A step is a whole transaction, since that is what the database
guarantees; a mistake that lives inside one is written as two (``World.split``). Time stands still, and passes as a
step of its own.
"""
