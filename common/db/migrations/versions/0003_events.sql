-- Events, their deliveries to webhooks, and sharing links.

select;
