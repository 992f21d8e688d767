"""Domain Connect: a provider's own page writes our records, with the person's consent (draft-ietf-dconn-domainconnect).

Words
    provider        a DNS provider: it has the settings, the templates that it accepts, and the consent page
    settings        what the provider states for one domain: where its API and its consent page are
    template        the records that we may ask for, with variables; each provider has accepted it beforehand
    service         the id of a template, beside the service provider's id, which is this installation's
    filled          a template with values for its variables, and the host that it is applied to
    apply URL       the consent page with a filled template in its query, signed

``provider_settings`` reads what a provider states, ``discovery`` asks for it (``recent`` remembers, for domain checks),
``templates`` finds the template that expresses a flow's records, ``agreement`` holds it against the plan, ``signing``
makes the apply URL and the records of the public key. Only ``discovery`` asks the network.
"""
