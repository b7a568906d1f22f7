import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-entry',
    sql: `CREATE TABLE audit_entry (
      id INTEGER PRIMARY KEY, timestamp TEXT NOT NULL, event_type TEXT NOT NULL, agent_id TEXT NOT NULL, details TEXT NOT NULL,
      prev_hash TEXT NOT NULL, hash TEXT NOT NULL
    );
    CREATE INDEX audit_entry_agent ON audit_entry (agent_id, id);
    CREATE INDEX audit_entry_event ON audit_entry (event_type, id);`,
  },
]
