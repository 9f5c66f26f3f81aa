create schema x;
create database d;
create sequence s;
create table t (a int primary key, b text);
insert into t values (1, 'one'), (2, 'two');
create table keyed (a int primary key, b text, e int);
create index i on keyed (b);
create table parts (a int) partition by list (a);
create table p1 partition of parts for values in (1);
create view v as select 1 as one;
create materialized view mv as select 1 as one;
create type m as enum ('some');
create type comp as (x int);
create domain p as int;
create collation co (provider = icu, locale = 'sv');
create function fn(int) returns int language sql as 'select $1';
declare c cursor with hold for select 1;
prepare p (int) as select $1::int
