import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-event',
    sql: `CREATE TABLE comms_event (
      -- That of the message, or audit-<number of the entry>.
      id TEXT NOT NULL PRIMARY KEY,
      sequence BIGINT NOT NULL,
      timestamp TEXT NOT NULL,
      kind TEXT NOT NULL,
      source_id TEXT NOT NULL,
      source_name TEXT NOT NULL,
      target_id TEXT NOT NULL,
      target_name TEXT NOT NULL,
      detail TEXT NOT NULL
    )`,
  },
  { id: '002-event-sequence', sql: 'CREATE INDEX comms_event_sequence ON comms_event (sequence)' },
  { id: '003-event-timestamp', sql: 'CREATE INDEX comms_event_timestamp ON comms_event (timestamp)' },
  // How far the audit trail is read.
  { id: '004-position', sql: 'CREATE TABLE comms_position (id INTEGER PRIMARY KEY, position BIGINT NOT NULL)' },
]
