-- Monitored domains, their checks, and batches.

select;
