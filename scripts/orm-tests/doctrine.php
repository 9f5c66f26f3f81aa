<?php
// Doctrine's DBAL and PDO: a schema that is made, compared with what the catalogs say, and changed.
preg_match('#//([^@]*)@([^:]*):(\d+)/(.*)#',$argv[1],$at);[,$user,$host,$port,$db]=$at;
require '/usr/share/php/Doctrine/DBAL/autoload.php';
use Doctrine\DBAL\DriverManager; use Doctrine\DBAL\Schema\Schema; use Doctrine\DBAL\Types\Types; use Doctrine\DBAL\Schema\Comparator;
$c=DriverManager::getConnection(['driver'=>'pdo_pgsql','host'=>$host,'port'=>(int)$port,'dbname'=>$db,'user'=>$user]);
// A step's name, and what came of it, on a line.
function step($name, $code)
{
    try {
        $said = json_encode($code(), JSON_PARTIAL_OUTPUT_ON_ERROR | JSON_UNESCAPED_UNICODE);
    } catch (\Throwable $e) {
        $said = get_class($e) . ': ' . strtok($e->getMessage(), "\n");
    }
    echo strtr($name, ' ', '_') . " $said\n";
}
step('clean',function()use($c){$c->executeStatement('drop schema if exists doc cascade');$c->executeStatement('create schema doc');$c->executeStatement('set search_path to doc');return 1;});
step('platform',fn()=>get_class($c->getDatabasePlatform()));
$s=new Schema();
$u=$s->createTable('users');$u->addColumn('id','integer',['autoincrement'=>true]);$u->addColumn('name','string',['length'=>60,'comment'=>'their name']);$u->addColumn('doc','json',['notnull'=>false]);$u->addColumn('bal','decimal',['precision'=>12,'scale'=>4,'default'=>'0.5']);$u->addColumn('made','datetimetz_immutable',['default'=>'CURRENT_TIMESTAMP']);$u->addColumn('g','guid',['notnull'=>false]);$u->addColumn('raw','blob',['notnull'=>false]);$u->addColumn('flag','boolean',['default'=>true]);$u->addColumn('small','smallint',['default'=>3]);$u->addColumn('t','time',['notnull'=>false]);$u->addColumn('d','date',['notnull'=>false]);$u->addColumn('dt','datetime',['notnull'=>false]);$u->addColumn('f','float',['notnull'=>false]);$u->addColumn('arr','simple_array',['notnull'=>false]);$u->addColumn('fix','string',['fixed'=>true,'length'=>5,'notnull'=>false]);$u->setPrimaryKey(['id']);$u->addUniqueIndex(['name'],'u_name');$u->setComment('people');
$o=$s->createTable('orders');$o->addColumn('id','bigint',['autoincrement'=>true]);$o->addColumn('user_id','integer');$o->addColumn('note','text',['notnull'=>false]);$o->setPrimaryKey(['id']);$o->addForeignKeyConstraint('users',['user_id'],['id'],['onDelete'=>'CASCADE'],'fk_o');$o->addIndex(['user_id','note'],'i_note',[],['where'=>'(note IS NOT NULL)']);
$s->createSequence('plain_seq',5,10);
step('sql',function()use($c,$s){foreach($s->toSql($c->getDatabasePlatform()) as $q)$c->executeStatement($q);return $s->toSql($c->getDatabasePlatform());});
step('insert',function()use($c){$c->insert('users',['name'=>'Ann é','doc'=>['a'=>[1,null]],'raw'=>"\0\1\xff",'flag'=>false,'arr'=>['x','y'],'d'=>new DateTime('2020-02-03'),'dt'=>new DateTime('2020-02-03 04:05:06')],['doc'=>'json','raw'=>'blob','flag'=>'boolean','arr'=>'simple_array','d'=>'date','dt'=>'datetime']);return $c->lastInsertId();});
step('select',function()use($c){$r=$c->fetchAssociative('select * from users where id=?',[1]);$r['raw']=bin2hex(stream_get_contents($r['raw']));unset($r['made']);return $r;});
step('qb',function()use($c){$q=$c->createQueryBuilder();return $q->select('u.name','count(o.id) n')->from('users','u')->leftJoin('u','orders','o','o.user_id=u.id')->where($q->expr()->in('u.id',':ids'))->groupBy('u.name')->orderBy('u.name')->setParameter('ids',[1,2,3],\Doctrine\DBAL\Connection::PARAM_INT_ARRAY)->setMaxResults(5)->executeQuery()->fetchAllAssociative();});
step('tx',function()use($c){$c->setNestTransactionsWithSavepoints(true);$c->beginTransaction();$c->insert('orders',['user_id'=>1,'note'=>'a']);$c->beginTransaction();try{$c->insert('orders',['user_id'=>77]);}catch(\Throwable $e){$m=get_class($e);$c->rollBack();}$c->commit();return [$m,$c->fetchOne('select count(*) from orders')];});
step('unique',fn()=>$c->insert('users',['name'=>'Ann é']));
step('notnull',fn()=>$c->insert('users',['name'=>null]));
step('syntax',fn()=>$c->executeQuery('selec 1'));
step('notable',fn()=>$c->executeQuery('select * from nope'));
step('nocol',fn()=>$c->executeQuery('select nope from users'));
step('dup table',fn()=>$c->executeStatement('create table users(a int)'));
$m=$c->createSchemaManager();
step('tables',function()use($m){$t=$m->listTableNames();sort($t);return $t;});
step('columns',function()use($m){$o=[];foreach($m->listTableColumns('users') as $k=>$x){$a=$x->toArray();$a['type']=get_class($a['type']);$o[$k]=$a;}return $o;});
step('indexes',function()use($m){$o=[];foreach(['users','orders'] as $t)foreach($m->listTableIndexes($t) as $k=>$x)$o[$t.$k]=[$x->getColumns(),$x->isUnique(),$x->isPrimary(),$x->getOptions()];ksort($o);return $o;});
step('fks',fn()=>array_map(fn($x)=>[$x->getName(),$x->getLocalColumns(),$x->getForeignTableName(),$x->getForeignColumns(),$x->getOptions()],$m->listTableForeignKeys('orders')));
step('sequences',function()use($m){$o=array_map(fn($x)=>[$x->getName(),$x->getInitialValue(),$x->getAllocationSize(),$x->getCache()],$m->listSequences());sort($o);return $o;});
step('schemas',fn()=>in_array('doc',$m->listSchemaNames()));
step('databases',fn()=>count($m->listDatabases())>0);
step('introspect diff',function()use($m,$c,$s){$i=$m->createSchema();$d=(new Comparator())->compareSchemas($i,$s);return $d->toSql($c->getDatabasePlatform());});
step('alter',function()use($m,$c,$s){$s2=clone $s;$u=$s2->getTable('users');$u->addColumn('extra','string',['length'=>20,'default'=>'q']);$u->changeColumn('small',['type'=>\Doctrine\DBAL\Types\Type::getType('bigint')]);$u->dropColumn('f');$u->addIndex(['extra']);$s2->getTable('orders')->removeForeignKey('fk_o');$s2->dropSequence('plain_seq');$i=$m->createSchema();$q=(new Comparator())->compareSchemas($i,$s2)->toSql($c->getDatabasePlatform());foreach($q as $x)$c->executeStatement($x);return $q;});
step('columns2',fn()=>array_map(fn($x)=>[$x->getName(),get_class($x->getType()),$x->getDefault()],array_values($m->listTableColumns('users'))));
step('views',function()use($m,$c){$m->createView(new \Doctrine\DBAL\Schema\View('vv','select id,name from users'));return array_values(array_map(fn($v)=>[$v->getName()],array_filter($m->listViews(),fn($v)=>str_contains($v->getName(),'vv'))));});
step('rename',fn()=>$m->renameTable('orders','bills'));
step('lock',function()use($c){$c->beginTransaction();$r=$c->fetchOne('select name from users where id=1 '.$c->getDatabasePlatform()->getWriteLockSQL());$c->commit();return $r;});
step('iso',function()use($c){$c->setTransactionIsolation(\Doctrine\DBAL\TransactionIsolationLevel::READ_COMMITTED);return $c->fetchOne('show transaction isolation level');});
step('pdo',function()use($c){$p=$c->getNativeConnection();$s=$p->prepare('select :a::int+1 as x, :b as y');$s->bindValue('a',4,PDO::PARAM_INT);$s->bindValue('b','t');$s->execute();$r=[$s->fetch(PDO::FETCH_ASSOC),$s->getColumnMeta(0)];return $r;});
step('pdo copy',function()use($c){$p=$c->getNativeConnection();$p->pgsqlCopyFromArray('bills',["5\t1\tz","6\t1\t\\N"]);return $p->pgsqlCopyToArray('bills');});
step('pdo emul',function()use($c){$p=$c->getNativeConnection();$p->setAttribute(PDO::ATTR_EMULATE_PREPARES,true);$s=$p->prepare('select * from users where name=? and id=?');$s->execute(["Ann é",'1']);return $s->rowCount();});
step('pdo multi',function()use($c){$p=$c->getNativeConnection();$p->exec("create table z1(a int); insert into z1 values (1),(2)");return $p->query('select sum(a) from z1')->fetchColumn();});
step('pdo notify',function()use($c){$p=$c->getNativeConnection();$p->exec('listen q');$p->exec("notify q,'pay'");$n=$p->pgsqlGetNotify(PDO::FETCH_ASSOC,1000);return [$n['message'],$n['payload']];});
step('pg_',function()use($host,$port,$db,$user){$l=pg_connect("host=$host port=$port dbname=$db user=$user");pg_query($l,'set search_path=doc');$o=[];$o[]=pg_meta_data($l,'z1');pg_insert($l,'z1',['a'=>7]);$o[]=pg_select($l,'z1',['a'=>7]);pg_update($l,'z1',['a'=>8],['a'=>7]);pg_delete($l,'z1',['a'=>8]);$r=pg_query_params($l,'select $1::int as k, $2 as t',[3,'x']);$o[]=pg_fetch_assoc($r);$o[]=[pg_field_type($r,0),pg_field_type($r,1),pg_field_prtlen($r,0,0),pg_field_size($r,0)];$o[]=pg_copy_to($l,'z1');pg_send_query($l,'select 1; select 2');while($q=pg_get_result($l))$o[]=pg_fetch_row($q);$o[]=pg_convert($l,'users',['name'=>"x'y",'id'=>'5','flag'=>'t']);$o[]=pg_parameter_status($l,'server_encoding');$o[]=pg_field_table(pg_query($l,'select a from z1'),0);return $o;});
