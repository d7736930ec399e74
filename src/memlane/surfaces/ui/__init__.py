"""The page that `memlane ui` serves to a browser on the same machine.

    serving     the server: a socket on loopback, the address that is printed, the browser
    guard       who may talk to it, and the headers of every answer
    api         what the page asks for: one function of the bank for each question
    aside       a process for those that take long
    events      what is told to an open page when something changes
    markdown    a memory's text as a tree of elements: HTML is never made of it
    page/       the page itself: HTML, CSS and modules of JavaScript, as they are served

Only `memlane ui` imports these modules.
"""
