"""ODBC (psqlodbc through pyodbc): parameters, transactions, cursors, and its questions about the catalogs."""
import re,sys,pyodbc
user,host,port,db=re.search(r'//([^@]*)@([^:]*):(\d+)/(.*)',sys.argv[1]).groups()
c=pyodbc.connect(f"DRIVER={{PostgreSQL Unicode}};SERVER={host};PORT={port};DATABASE={db};UID={user};PWD=x",autocommit=True)
k=c.cursor()
def step(n,f):
    try: print(n.replace(" ","_"),f())
    except Exception as e: print(n.replace(" ","_"),"ERR",type(e).__name__,str(e)[:300].split(chr(10))[0])
def ex(s,*a):
    k.execute(s,*a)
    return [tuple(r) for r in k.fetchall()] if k.description else k.rowcount
step('schema',lambda:(ex("drop schema if exists od cascade"),ex("create schema od"),ex("set search_path=od")) and 1)
step('tables',lambda:[ex(s) for s in ["create table a(id serial primary key, name varchar(30) not null, amount numeric(10,2) default 1.5, born date, ts timestamp(3), raw bytea, ok bool, f8 float8, big bigint, txt text, u uuid)","create table b(a_id int references a(id) on delete cascade, n int, note text, primary key(a_id,n))","create index b_note on b(note desc)","create unique index a_name on a(lower(name))","create view va as select id,name from a","comment on column a.name is 'nm'"]])
step('insert',lambda:ex("insert into a(name,amount,born,ok,raw,f8,big,txt) values(?,?,?,?,?,?,?,?)","Ann é",12.25,__import__('datetime').date(2020,1,2),True,b"\0\1\xff",1.5,2**40,"t"*5000))
step('select',lambda:ex("select id,name,amount,born,ts,raw,ok,f8,big,length(txt),u from a"))
step('desc',lambda:(k.execute("select * from a"),[d[:7] for d in k.description])[1])
step('many',lambda:(k.executemany("insert into b values(?,?,?)",[(1,i,f"n{i}") for i in range(50)]),ex("select count(*) from b"))[1])
k.fast_executemany=True
step('fastmany',lambda:(k.executemany("insert into b values(?,?,?)",[(1,i,None if i%2 else "z") for i in range(50,90)]),ex("select count(*),count(note) from b"))[1])
def meta(f,*cols):
    return sorted([tuple(getattr(r,c) for c in cols) for r in f],key=str)
step('tables()',lambda:meta(k.tables(schema='od'),'table_schem','table_name','table_type','remarks'))
step('columns()',lambda:meta(k.columns(schema='od',table='a'),'column_name','data_type','type_name','column_size','decimal_digits','nullable','column_def','ordinal_position','is_nullable'))
step('pk',lambda:meta(k.primaryKeys(table='b',schema='od'),'table_name','column_name','key_seq','pk_name'))
step('fk',lambda:meta(k.foreignKeys(table='a',schema='od'),'pktable_name','pkcolumn_name','fktable_name','fkcolumn_name','update_rule','delete_rule','fk_name','pk_name'))
step('fk2',lambda:meta(k.foreignKeys(foreignTable='b',foreignSchema='od'),'pktable_name','pkcolumn_name','fktable_name','fkcolumn_name','update_rule','delete_rule'))
step('stat',lambda:meta(k.statistics(table='b',schema='od'),'table_name','non_unique','index_name','type','ordinal_position','column_name','asc_or_desc'))
step('stat2',lambda:meta(k.statistics(table='a',schema='od',unique=True),'non_unique','index_name','ordinal_position','column_name'))
step('rowid',lambda:meta(k.rowIdColumns(table='b',schema='od'),'column_name','data_type','type_name'))
step('rowver',lambda:meta(k.rowVerColumns(table='b',schema='od'),'column_name'))
step('procs',lambda:len([1 for r in k.procedures(schema='od')]))
step('procs2',lambda:(ex("create function od.fx(i int) returns int language sql as 'select i+1'"),meta(k.procedures(schema='od'),'procedure_name'))[1])
step('proccols',lambda:meta(k.procedureColumns(schema='od',procedure='fx'),'column_name','column_type','type_name'))
step('call',lambda:ex("{? = call od.fx(4)}") if 0 else ex("select od.fx(?)",4))
step('escape',lambda:ex("select {fn ucase('abc')}, {d '2020-01-02'}, {ts '2020-01-02 03:04:05'}, {fn concat('a','b')}"))
step('types',lambda:len(k.getTypeInfo().fetchall())>5)
step('err',lambda:ex("insert into b values(1,1,'dup')"))
step('err2',lambda:ex("select nope from a"))
def tx():
    c.autocommit=False
    k.execute("insert into b values(1,1000,'tx')"); c.rollback()
    k.execute("insert into b values(1,1001,'tx')"); c.commit(); c.autocommit=True
    return ex("select count(*) from b where n>=1000")
step('tx',tx)
def txerr():
    c.autocommit=False
    k.execute("insert into b values(1,2000,'tx')")
    try: k.execute("insert into b values(1,2000,'tx')")
    except Exception as e: pass
    k.execute("insert into b values(1,2001,'tx')"); c.commit(); c.autocommit=True
    return ex("select count(*) from b where n>=2000")
step('stmt rollback',txerr)
step('info',lambda:[c.getinfo(x) for x in (pyodbc.SQL_DBMS_NAME,pyodbc.SQL_CATALOG_TERM,pyodbc.SQL_MAX_IDENTIFIER_LEN if hasattr(pyodbc,'SQL_MAX_IDENTIFIER_LEN') else pyodbc.SQL_MAX_COLUMN_NAME_LEN,pyodbc.SQL_IDENTIFIER_QUOTE_CHAR,pyodbc.SQL_TXN_CAPABLE)])
step('scroll',lambda:(k.execute("select n from b order by n"),k.fetchmany(3),k.skip(2),k.fetchone())[-1])
step('multi',lambda:(k.execute("select 1; select 2"),k.fetchall(),k.nextset(),k.fetchall())[-1])
step('null param',lambda:ex("select ?::int is null, ?::text",None,None))
step('uuid',lambda:ex("select ?::uuid",__import__('uuid').UUID(int=5)))
step('big',lambda:ex("select length(?)", "x"*300000))
