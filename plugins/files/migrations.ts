import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-upload',
    sql: `CREATE TABLE files_upload (
      id TEXT NOT NULL PRIMARY KEY,
      agent_id TEXT NOT NULL,
      filename TEXT NOT NULL,
      path TEXT NOT NULL,
      content_type TEXT NOT NULL,
      size_bytes INTEGER NOT NULL,
      created_at TEXT NOT NULL
    );
    CREATE INDEX files_upload_agent ON files_upload (agent_id);`,
  },
]
