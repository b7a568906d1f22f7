import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-event',
    sql: `CREATE TABLE events_event (
      id TEXT NOT NULL PRIMARY KEY,
      event_type TEXT NOT NULL,
      -- JSON, as is labels.
      payload TEXT NOT NULL,
      agent_id TEXT NOT NULL,
      labels TEXT NOT NULL,
      -- ISO 8601 UTC.
      at TEXT NOT NULL
    )`,
  },
  { id: '002-event-at', sql: 'CREATE INDEX events_event_at ON events_event (at)' },
]
