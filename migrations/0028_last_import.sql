-- `/metrics` asks for the last import on every scrape, which read all runs where there was none.
create index run_imported on run (seq) where origin = 'import';
