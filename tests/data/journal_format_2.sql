-- A journal of format 2, as the controller wrote it that had no checksums yet: sqlite3's dump of the whole file.
PRAGMA application_id=1706402083;
PRAGMA user_version=2;
BEGIN TRANSACTION;
CREATE TABLE point (job TEXT NOT NULL, iteration REAL NOT NULL, time REAL NOT NULL, metric REAL);
INSERT INTO "point" VALUES('a',1.0,1.79559079667112922668e+09,0.1);
INSERT INTO "point" VALUES('a',2.0,1.79559079767112922667e+09,0.2);
INSERT INTO "point" VALUES('a',3.0,1.79559079867112922671e+09,3.00000000000000044408e-01);
INSERT INTO "point" VALUES('a',4.0,1.79559079967112922675e+09,0.4);
INSERT INTO "point" VALUES('a',5.0,1.79559080067112922666e+09,0.5);
INSERT INTO "point" VALUES('a',7.0,1.79559080317112922673e+09,NULL);
INSERT INTO "point" VALUES('b',1.0,1.79559079567112922668e+09,0.0);
CREATE TABLE record (kind TEXT NOT NULL, id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (kind, id))
    WITHOUT ROWID;
INSERT INTO "record" VALUES('grave','gone','{"run":1,"gone_at":1795590795.7774794}');
INSERT INTO "record" VALUES('host','h1','{"sessions":[["s",1,[]]],"clock":[0.08373737335205078],"strays":[],"marks_acknowledgements":false}');
INSERT INTO "record" VALUES('job','a','{"spec":{"tasks":[{"role":"ps","host":"h1","port":5000},{"role":"worker","host":"h2","port":null}],"flows":[],"demand":[{"src":"h2","dst":"h1","bytes":1000000.0}],"metric":{"name":"accuracy","direction":"max"},"iterations":50.0,"compute_seconds":0.0,"weight":2.0,"arrival":null,"stage":null,"model":null},"run":1,"arrival":1795590795.6721668,"registered_at":1795590795.6721668,"since":null,"ended_at":null,"lost_since":null,"stage":"rung","registrar":null}');
INSERT INTO "record" VALUES('job','b','{"spec":{"tasks":[{"role":"ps","host":"h1","port":5001},{"role":"worker","host":"h2","port":null}],"flows":[],"demand":[{"src":"h2","dst":"h1","bytes":1000000.0}],"metric":{"name":"accuracy","direction":"max"},"iterations":50.0,"compute_seconds":0.0,"weight":0.5,"arrival":null,"stage":null,"model":null},"run":1,"arrival":1795590795.6863637,"registered_at":1795590795.6863637,"since":null,"ended_at":null,"lost_since":null,"stage":"rung","registrar":null}');
INSERT INTO "record" VALUES('plan','last','{"made_at":1795590798.1623075,"epoch":7,"host_epochs":{"h1":[8,"6e4e20cd962cc411fa40a99f6a39af54"],"h2":[7,"c3d6085e71beec3df85d3067e2ff2270"],"h3":[2,"8db01fddba17c49be562b78b12d59dea"]},"policy":"las","bands":[["a"],["b"]],"reasons":{"a":"has used 0.06 s of its bottleneck port: band 0, which ends at 1.00 s","b":"has used 2.50 s of its bottleneck port: band 2, which ends at 4.00 s"},"memory":{},"watch":{},"classes":{"a":0,"b":1},"objective_seconds":0.4224,"lower_bound_seconds":0.4224}');
INSERT INTO "record" VALUES('seen','a','{"flows":[["h1","h2",null,9]],"found":{},"tellers":{}}');
INSERT INTO "record" VALUES('settings','run-time','{"policy":"las","policy_options":{},"period_seconds":2.0,"file":{"policy":"fifo","policy_options":{},"period_seconds":0.5}}');
INSERT INTO "record" VALUES('stage','rung','{}');
INSERT INTO "record" VALUES('tally','a','{"sent":{"h1":0.0},"counts":{"h1":[["s:0",12345.0]]},"last_report":1795590795.7548666,"told_by":{"h1":false},"measured":[],"measured_iterations":0.0,"measured_on":[]}');
INSERT INTO "record" VALUES('tally','b','{"sent":{},"counts":{},"last_report":1795590795.7548666,"told_by":{"h1":false},"measured":[],"measured_iterations":0.0,"measured_on":[]}');
CREATE INDEX point_by_job ON point (job);
COMMIT;
