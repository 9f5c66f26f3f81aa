# DBIx::Class: a schema that its loader reads from the catalogs, and queries over it.
use strict; use warnings;
my ($user,$host,$port,$db)=$ARGV[0]=~m{//([^@]*)@([^:]*):(\d+)/(.*)};
use DBI; my $d=DBI->connect("dbi:Pg:dbname=$db;host=$host;port=$port",$user,'',{RaiseError=>1,PrintError=>0,PrintWarn=>0});
$d->do("set client_min_messages=error");
$d->do("drop schema if exists dx cascade");$d->do("create schema dx");
$d->do("create type dx.mood as enum('sad','ok','happy')");
$d->do("create table dx.artist(id serial primary key, name varchar(50) not null, mood dx.mood default 'ok', born date default current_date, n numeric(8,3), bits bit(3), arr int[], ts timestamp(2) default now(), txt text default 'it''s', f float4, c char(4), b boolean default false, j jsonb)");
$d->do("create table dx.cd(id bigserial primary key, artist_id int not null references dx.artist on delete cascade on update restrict, title text not null, year smallint, unique(artist_id,title))");
$d->do("create table dx.tag(cd_id bigint references dx.cd(id), tag text, primary key(cd_id,tag))");
$d->do("create view dx.v as select a.name, c.title from dx.artist a join dx.cd c on c.artist_id=a.id");
$d->do("comment on table dx.artist is 'an artist'"); $d->do("comment on column dx.artist.name is 'the name'");
use DBIx::Class::Schema::Loader qw/make_schema_at/;
make_schema_at('My::S',{db_schema=>'dx',naming=>'current',use_namespaces=>0,quiet=>1,generate_pod=>1},["dbi:Pg:dbname=$db;host=$host;port=$port",$user,'']);
my $s=My::S->connect("dbi:Pg:dbname=$db;host=$host;port=$port",$user,'',{on_connect_do=>["set search_path=dx"]});
use Data::Dumper;$Data::Dumper::Sortkeys=1;$Data::Dumper::Indent=0;$Data::Dumper::Terse=1;
for my $n (sort $s->sources){ my $r=$s->source($n); print "source_$n ",Dumper($r->columns_info,[$r->primary_columns],{$r->unique_constraints},[sort $r->relationships]),"\n"; }
my $a=$s->resultset('Artist')->create({name=>'A',mood=>'happy',n=>'1.5'}); $a->discard_changes; print "create ",$a->id,$a->name,$a->mood,"\n";
$s->txn_do(sub{ $a->create_related('cds',{title=>"t$_",year=>2000+$_}) for 1..3; });
print "related ",join(',',map{$_->title} $a->cds({year=>{'>'=>2001}},{order_by=>'title'})->all),"\n";
print "counted ",join(',',map{$_->name.':'.$_->get_column('c')} $s->resultset('Artist')->search({},{join=>'cds','+select'=>[{count=>'cds.id'}],'+as'=>['c'],group_by=>['me.id',map{"me.$_"}grep{!/^id$|^j$/}$s->source('Artist')->columns,'j']})->all),"\n";
print "prefetched ",join(',',map{$_->title.'/'.$_->artist->name} $s->resultset('Cd')->search({},{prefetch=>'artist',order_by=>'me.title',rows=>2,offset=>1})->all),"\n";
my $u=$s->resultset('Cd')->update_or_create({artist_id=>1,title=>'t1',year=>1999},{key=>'cd_artist_id_title_key'}); print "updated ",$u->year,"\n";
print "deleted ",$s->resultset('Cd')->search({title=>{-like=>'t%'}})->delete,"\n";
eval{$s->resultset('Cd')->create({artist_id=>99,title=>'q'})};print $@=~/violates foreign key constraint/?"fk refused\n":"fk $@";
eval{$s->txn_do(sub{$s->resultset('Artist')->create({name=>'in'});die "x\n"})};print "rolled_back ",$s->resultset('Artist')->count,"\n";
