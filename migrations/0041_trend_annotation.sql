-- The glossary's names for what users say about a change: an annotation with a status.
alter table trend_judgement rename to trend_annotation;
alter table trend_annotation rename column ruling to status;
alter table trend_annotation rename column judged_by to annotated_by;
alter table trend_annotation rename column judged_at to annotated_at;
