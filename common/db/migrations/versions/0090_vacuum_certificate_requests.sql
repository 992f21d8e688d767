-- Its rows are swept by age, so a batch is found behind the index entries of those erased before it, until a vacuum.
alter table certificate_requests set (autovacuum_vacuum_scale_factor = 0.02);
