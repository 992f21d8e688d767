drop index domains_uncounted;
