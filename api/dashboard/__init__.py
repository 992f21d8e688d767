"""The dashboard: pages under ``/dashboard`` for partners and operators, rendered on the server.

Words
    user        a person who signs in; belongs to organisations with a role, or is an operator
    visitor     the user of a request, with what the roles permit
    page        a handler and its template; a fragment is a part of a page that loads or refreshes by itself

Rules
    every query names the application that the visitor may see: `SignedInVisitor.require` decides, before anything is
        read
    a page shows what `api.services` and `common.db` find, and changes it through them; it has no rules of its own
    a live part depends on its arguments only, never on a request or a user: all who see the same share one rendering
    a change is a POST with the CSRF token of the session, from our own origin
    a secret is shown by the answer that made it, and by no other page
"""
