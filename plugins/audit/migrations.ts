import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-entry',
    sql:
      `CREATE TABLE audit_entry (
      id INTEGER PRIMARY KEY, timestamp TEXT NOT NULL, event_type TEXT NOT NULL, agent_id TEXT NOT NULL, ` +
      `details TEXT NOT NULL,
      prev_hash TEXT NOT NULL, hash TEXT NOT NULL
    );
    CREATE INDEX audit_entry_agent ON audit_entry (agent_id, id);
    CREATE INDEX audit_entry_event ON audit_entry (event_type, id);`,
  },
  {
    // `position` counts whole blocks of 1,024 entries from 0; `size` is how many entries a tree has, which is the
    // number of its last one.
    id: '002-checkpoint',
    sql:
      `CREATE TABLE audit_block (position INTEGER PRIMARY KEY, root TEXT NOT NULL);
    CREATE TABLE audit_checkpoint (size INTEGER PRIMARY KEY, root TEXT NOT NULL, timestamp TEXT NOT NULL, ` +
      `key_id TEXT NOT NULL, signature TEXT NOT NULL);
    CREATE TABLE audit_origin (id INTEGER PRIMARY KEY, entry_id INTEGER NOT NULL, hash TEXT NOT NULL, ` +
      `key_id TEXT NOT NULL, signature TEXT NOT NULL);`,
  },
  {
    // Empty: there was no caller, or the row is older than this column.
    id: '003-actor',
    sql: `ALTER TABLE audit_entry ADD COLUMN actor TEXT NOT NULL DEFAULT ''`,
  },
  {
    // Used on PostgreSQL only, where several daemons may write. A daemon has a chain for each batch that it has open at
    // the same time: `seq` and `hash` are those of its newest entry. Entries are staged until they get their numbers.
    // `claim` tells who made a key.
    id: '004-writers',
    sql: `ALTER TABLE audit_entry ADD COLUMN writer TEXT;
    ALTER TABLE audit_entry ADD COLUMN seq BIGINT;
    ALTER TABLE audit_entry ADD COLUMN writer_hash TEXT;
    CREATE TABLE audit_chain (home TEXT NOT NULL, number INTEGER NOT NULL, seq BIGINT NOT NULL, hash TEXT NOT NULL,
      PRIMARY KEY (home, number));
    CREATE TABLE audit_staged (ticket INTEGER PRIMARY KEY, writer TEXT NOT NULL, seq BIGINT NOT NULL,
      timestamp TEXT NOT NULL, event_type TEXT NOT NULL, agent_id TEXT NOT NULL, details TEXT NOT NULL,
      actor TEXT NOT NULL, hash TEXT NOT NULL);
    CREATE TABLE audit_lock (name TEXT NOT NULL PRIMARY KEY, claim TEXT NOT NULL);
    INSERT INTO audit_lock (name, claim) VALUES ('numbers', ''), ('anchor-key', ''), ('checkpoint-key', '');`,
  },
]
