# Sequel: schemas, data sets, prepared statements, COPY, cursors, notifications, the catalogs.
require 'sequel'
user,host,port,db=ARGV[0].match(%r{//([^@]*)@([^:]*):(\d+)/(.*)}).captures
D=Sequel.connect(adapter:'postgres',host:host,port:port.to_i,database:db,user:user)
# A step's name, and what came of it, on a line.
def step(name)
  said = begin
    yield.inspect
  rescue StandardError => e
    "#{e.class}: #{e.message.lines.first.to_s.strip}"
  end
  puts "#{name.tr(' ', '_')} #{said.gsub(/0x\h+/, 'ADDRESS').gsub("\n", ' ')}"
end
D.extension :pg_array,:pg_json,:pg_range,:pg_inet,:pg_row,:pg_enum,:pg_interval,:constraint_validations rescue puts $!.message
step('clean'){D.run "drop schema if exists sq cascade; create schema sq"; D.run "set search_path=sq"}
step('create'){D.create_table(:a){primary_key :id; String :name,null:false,size:40,unique:true; Integer :n,default:3; BigDecimal :d,size:[10,2]; column :tags,'text[]'; column :j,:jsonb; column :r,:int4range; column :ip,:inet; DateTime :at; TrueClass :ok; constraint(:pos){n>0}; index [:n,:name],name: :n_idx; foreign_key :p,:a,on_delete: :set_null}}
step('create2'){D.create_table(:b){foreign_key :a_id,:a,on_delete: :cascade,on_update: :cascade; Integer :k; String :t,text:true; primary_key [:a_id,:k]; check{k>=0}}}
step('insert'){[D[:a].insert(name:'x',tags:Sequel.pg_array(['a','b']),j:Sequel.pg_jsonb({'a'=>1}),r:Sequel.pg_range(1..5),ip:'1.2.3.4',d:1.5),D[:a].returning(:id,:n).insert(name:'y')]}
step('multi'){D[:b].multi_insert([{a_id:1,k:1,t:'q'},{a_id:1,k:2,t:nil}]); D[:b].import([:a_id,:k],[[2,1],[2,2]]); D[:b].count}
step('select'){D[:a].order(:id).all.map{|h|h.transform_values{|v| v.respond_to?(:begin) ? [v.begin,v.end] : v.to_s}}}
step('graph'){D[:a].join(:b,a_id: :id).select_group(Sequel[:a][:name]).select_append{count(Sequel.lit('*')).as(:c)}.order(:name).all}
step('upsert'){D[:a].insert_conflict(target: :name,update:{n:9}).insert(name:'x'); D[:a].where(name:'x').get(:n)}
step('ignore'){D[:a].insert_ignore.insert(name:'x')}
step('update ret'){D[:a].where(id:1).returning.update(n:Sequel[:n]+1).map{|h|h[:n]}}
step('cte'){D[:t].with_recursive(:t,D.select(Sequel.as(1,:x)),D[:t].select{x+1}.where{x<5}).sum(:x)}
step('window'){D[:b].select(:k).select_append{row_number.function.over(partition: :a_id,order: :k).as(:rn)}.order(:a_id,:k).all}
step('schema'){D.schema(:a).map{|n,h|[n,h.slice(:db_type,:type,:primary_key,:default,:ruby_default,:allow_null,:max_length,:auto_increment)]}}
step('indexes'){D.indexes(:a)}
step('fks'){D.foreign_key_list(:b)}
step('rfks'){D.foreign_key_list(:a,reverse:true) rescue $!.class}
step('checks'){D.check_constraints(:a).transform_values{|h|[h[:definition],h[:columns]]}}
step('checks b'){D.check_constraints(:b).transform_values{|h|[h[:definition],h[:columns]]}}
step('tables'){[D.tables,D.views,D.table_exists?(:a),D.primary_key(:a),D.primary_key_sequence(:a)]}
step('alter'){D.alter_table(:a){add_column :z,String,default:'q'; rename_column :n,:m; set_column_type :d,:Float; drop_constraint :pos; add_index :z,concurrently:true; set_column_not_null :z; add_unique_constraint [:m,:z],name: :mz}; D.schema(:a).map(&:first)}
step('enum'){D.create_enum(:mood,%w[s h]); D.add_enum_value(:mood,'x'); D.alter_table(:a){add_column :mo,:mood}; D.schema(:a).assoc(:mo)[1].slice(:type,:db_type)}
step('savepoint'){D.transaction{D[:b].insert(a_id:1,k:50); D.transaction(savepoint:true){D[:b].insert(a_id:1,k:51); raise Sequel::Rollback}}; D[:b].where(a_id:1).select_map(:k).sort}
step('iso'){D.transaction(isolation: :serializable,retry_on:[Sequel::SerializationFailure]){D[:a].count}}
step('locks'){D.transaction{D[:a].order(:id).for_update.skip_locked.limit(1).get(:id)}}
step('e unique'){D[:a].insert(name:'y')}
step('e fk'){D[:b].insert(a_id:77,k:1)}
step('e nn'){D[:a].insert(name:nil)}
step('e check'){D[:b].insert(a_id:1,k:-1)}
step('error_info'){begin;D[:b].insert(a_id:77,k:1);rescue=>e;D.error_info(e).reject{|k,_| k.to_s.start_with?('source')};end}
step('prepared'){ds=D[:a].where(id: :$i).prepare(:first,:pa); [ds.call(i:1)[:name],ds.call(i:2)[:name]]}
step('copy'){[D.copy_table(D[:b].order(:a_id,:k),format: :csv),D.copy_into(:b,format: :csv,data:"2,80,zz\n2,81,\n"),D[:b].where(a_id:2).count]}
step('cursor'){D[:b].order(:a_id,:k).use_cursor(rows_per_fetch:2).map{|h|h[:k]}}
step('listen'){D.listen('ch',loop:false,timeout:1,after_listen:->(c){D.notify('ch',payload:'p') rescue D.synchronize{|cc|cc.exec("notify ch,'p'")}}){|c,p,pl| puts "got #{c} #{pl}"}}
step('explain'){D[:a].explain.lines.size>0}
step('view'){D.create_view(:v,D[:a].select(:id)); D.create_view(:mv,D[:b],materialized:true); D.refresh_view(:mv); [D.views,D.views(materialized:true)]}
step('json ops'){D[:a].where(Sequel.pg_jsonb_op(:j).contains('a'=>1)).count rescue D.extension(:pg_json_ops)}
step('lateral'){D[:a].cross_join(D[:b].where(a_id: Sequel[:a][:id]).order(:k).limit(1).lateral).order(Sequel[:a][:id]).select_map([Sequel[:a][:id],:k])}
step('truncate'){D[:b].truncate(cascade:true,restart:true); D[:b].count}
step('server_version'){D.server_version/10000}
step('drop'){D.drop_view(:mv,materialized:true); D.drop_table(:b,:a,cascade:true); D.tables}
