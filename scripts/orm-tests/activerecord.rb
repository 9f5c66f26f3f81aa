# ActiveRecord of Rails: migrations, models, queries, errors, what it asks of the catalogs.
require 'active_record'; require 'pg'
user,host,port,db=ARGV[0].match(%r{//([^@]*)@([^:]*):(\d+)/(.*)}).captures
ActiveRecord::Base.establish_connection(adapter:'postgresql',host:host,port:port.to_i,database:db,username:user)
$c=ActiveRecord::Base.connection
# A step's name, and what came of it, on a line.
def step(name)
  said = begin
    yield.inspect
  rescue StandardError => e
    "#{e.class}: #{e.message.lines.first.to_s.strip}"
  end
  puts "#{name.tr(' ', '_')} #{said.gsub(/0x\h+/, 'ADDRESS').gsub("\n", ' ')}"
end
step('clean'){ $c.execute("drop schema if exists ar cascade"); $c.execute("create schema ar"); $c.schema_search_path='ar'; 1 }
ActiveRecord::Schema.verbose=false
step('schema'){ ActiveRecord::Schema.define do
  create_table :authors do |t| t.string :name, null:false, limit:80; t.integer :age; t.jsonb :prefs, default:{}; t.string :tags, array:true, default:[]; t.decimal :score, precision:10, scale:3; t.uuid :token, default:-> {"gen_random_uuid()"}; t.inet :ip; t.daterange :period; t.boolean :on, default:true; t.binary :raw; t.time :at; t.interval :span if false; t.timestamps precision:6; end
  create_table :books do |t| t.references :author, null:false, foreign_key:{on_delete: :cascade}; t.string :title; t.text :body; t.bigint :pages; t.date :published; t.timestamps; end
  add_index :books, [:author_id,:title], unique:true, name:'by_author_title'
  add_index :books, 'lower(title)', name:'low'
  add_index :books, :pages, where:'pages > 100', order:{pages: :desc}, name:'big'
  add_index :authors, :tags, using: :gin rescue puts "gin: #{$!.message[0,90]}"
  add_check_constraint :books, 'pages >= 0', name:'pages_pos'
  create_table :posts, id: :uuid do |t| t.string :t; end
  create_join_table :authors, :posts
 end; 1 }
class Author<ActiveRecord::Base; has_many :books; validates :name, presence:true; end
class Book<ActiveRecord::Base; belongs_to :author; end
class Post<ActiveRecord::Base; end
step('create'){ a=Author.create!(name:"Ann é",age:3,prefs:{'k'=>[1,{'z'=>nil}]},tags:['x','y,"z'],score:'12.345',ip:'10.0.0.1',period:Date.new(2020,1,1)..Date.new(2020,2,1),raw:"\0\x01\xff".b,at:'10:11:12'); a.reload; [a.id,a.name,a.prefs,a.tags,a.score,a.ip.to_s,a.period,a.raw.bytes,a.at.strftime('%H:%M:%S'),a.on,a.token.size] }
step('assoc'){ a=Author.first; 3.times{|i| a.books.create!(title:"T#{i}",pages:i*100,published:'2021-03-04')}; [a.books.count,a.books.where('pages>?',50).pluck(:title),a.books.order(pages: :desc).limit(1).first.title] }
step('includes'){ Author.includes(:books).references(:books).where(books:{title:'T1'}).map{|a|[a.id,a.books.map(&:title)]} }
step('joins group'){ Author.joins(:books).group('authors.name').having('count(*)>1').sum(:pages) }
step('unique'){ Author.first.books.create!(title:'T1') }
step('fk'){ Book.create!(author_id:999,title:'q') }
step('fk insert'){ $c.execute("insert into books(author_id,title,created_at,updated_at) values(999,'q',now(),now())") }
step('notnull'){ Author.new.save!(validate:false) }
step('check'){ Author.first.books.create!(title:'neg',pages:-1) }
step('toolong'){ Author.create!(name:'x'*100) }
step('txn'){ Author.transaction{ Author.create!(name:'in'); Author.transaction(requires_new:true){ Author.create!(name:'sp'); raise ActiveRecord::Rollback }; }; Author.pluck(:name).sort }
step('lock'){ Author.transaction{ Author.lock.first.name } }
step('upsert_all'){ Author.upsert_all([{id:1,name:'Up',created_at:Time.at(0),updated_at:Time.at(0)}]); Author.find(1).name }
step('insert_all'){ r=Author.insert_all([{name:'i1',created_at:Time.at(0),updated_at:Time.at(0)}],returning:%w[name]); r.to_a }
step('update_all'){ Book.update_all('pages = pages + 1') }
step('jsonb query'){ Author.where("prefs @> ?", {k:[1]}.to_json).count }
step('array query'){ Author.where("'x' = ANY(tags)").count }
step('find_each'){ Book.find_each(batch_size:2).map(&:title) }
step('exists/pluck/in'){ [Book.exists?(title:'T1'),Book.where(title:%w[T0 T2]).order(:title).pluck(:id,:title),Book.where(id:[]).count] }
step('uuid pk'){ p=Post.create!(t:'q'); Post.find(p.id).t }
step('cte'){ $c.select_all("with x as (select * from books) select count(*) n from x").to_a }
step('explain'){ Author.where(id:1).explain.lines.size>1 }
step('tables'){ $c.tables.sort }
step('columns'){ $c.columns('authors').map{|c|[c.name,c.sql_type,c.type,c.limit,c.precision,c.scale,c.null,c.default,c.default_function,c.array]} }
step('indexes'){ $c.indexes('books').map{|i|[i.name,i.unique,i.columns,i.orders,i.where,i.using,i.opclasses,i.comment]} }
step('fks'){ $c.foreign_keys('books').map{|f|[f.to_table,f.column,f.primary_key,f.name.size,f.on_delete,f.on_update]} }
step('checks'){ $c.check_constraints('books').map{|f|[f.name,f.expression]} }
step('pk'){ [$c.primary_key('books'),$c.primary_keys('books'),$c.pk_and_sequence_for('books').map(&:to_s)] }
step('exists'){ [$c.table_exists?('books'),$c.column_exists?(:books,:title),$c.index_exists?(:books,[:author_id,:title]),$c.data_source_exists?('nope'),$c.view_exists?('v')] }
step('change'){ m=ActiveRecord::Migration[6.1]; Class.new(m){ def change; change_table(:books){|t| t.rename :body,:content; t.string :isbn, comment:'num'; t.index :isbn, algorithm: :concurrently rescue nil}; end }.migrate(:up); $c.columns('books').map(&:name) }
step('change2'){ $c.add_index :books,:isbn,algorithm: :concurrently; $c.change_column :books,:pages,:integer; $c.change_column_default :books,:pages,7; $c.change_column_null :books,:title,false,'none'; $c.rename_table :books,:tomes; $c.rename_index :tomes,'by_author_title','bat'; $c.remove_index :tomes,name:'big'; $c.columns('tomes').map{|c|[c.name,c.sql_type,c.null,c.default,c.comment]} }
step('indexes2'){ $c.indexes('tomes').map{|i|[i.name,i.unique,i.columns]}.sort_by(&:first) }
step('enum'){ $c.execute("create type mood as enum('a','b')"); $c.add_column :authors,:mood,"mood",default:'a'; $c.columns('authors').last.then{|c|[c.name,c.sql_type,c.type,c.default]} }
step('views'){ $c.execute("create view v as select * from tomes"); [$c.views,$c.data_sources.sort] }
step('comment'){ $c.change_table_comment :tomes,'they'; [$c.table_comment('tomes')] }
step('truncate'){ $c.truncate('authors_posts') rescue $!.message }
step('disable_ri'){ $c.disable_referential_integrity{ 1 } }
step('reset_pk'){ $c.reset_pk_sequence!('authors') }
step('extensions'){ [$c.supports_insert_on_conflict?,$c.database_version>=150000,$c.max_identifier_length,$c.encoding,$c.current_database.size>0,$c.current_schema,$c.client_min_messages] }
step('advisory'){ [$c.get_advisory_lock(77),$c.release_advisory_lock(77)] }
step('prepared'){ Author.where(id:1).to_a; Author.where(id:1).to_a; $c.execute("alter table authors add column zz int"); Author.where(id:1).first.id }
step('dump'){ require 'stringio'; s=StringIO.new; ActiveRecord::SchemaDumper.dump($c,s); s.string.lines.reject{|l| l=~/^ *#|enable_extension/}.join.squeeze("\n") }
step('isolation'){ Author.transaction(isolation: :serializable){ Author.count } }
step('drop'){ $c.drop_table :tomes, force: :cascade; $c.tables.sort }
step('deadlock_class'){ $c.execute("set lock_timeout='50ms'"); t=PG.connect(host:host,port:port,dbname:db,user:user); t.exec("begin; select * from ar.authors where id=1 for update"); begin Author.lock.find(1) ensure t.exec("rollback"); end }
step('timeout'){ $c.execute("set statement_timeout='50ms'"); $c.execute("select pg_sleep(2)") }
