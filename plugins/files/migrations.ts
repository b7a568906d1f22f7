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
  {
    // What a call is about to change: after a crash the hashes tell whether it did.
    id: '002-change',
    sql: `CREATE TABLE files_change (
      call_key TEXT NOT NULL,
      path TEXT NOT NULL,
      agent_id TEXT NOT NULL,
      before_hash TEXT NOT NULL,
      after_hash TEXT NOT NULL,
      created_at TEXT NOT NULL,
      PRIMARY KEY (call_key, path)
    );
    CREATE INDEX files_change_time ON files_change (created_at);`,
  },
  {
    id: '003-stored',
    sql: `CREATE TABLE files_workspace (agent_id TEXT PRIMARY KEY);
    CREATE TABLE files_stored (
      agent_id TEXT NOT NULL,
      path TEXT NOT NULL,
      size_bytes INTEGER NOT NULL,
      modified_at TEXT NOT NULL,
      content BLOB NOT NULL,
      PRIMARY KEY (agent_id, path)
    );
    -- With a folder that all daemons mount, the file in it says which one it is.
    CREATE TABLE files_mount (home TEXT PRIMARY KEY, mount TEXT NOT NULL)`,
  },
  {
    // The content of a file that names an object lies in a bucket, and `content` is empty. Objects are written down
    // before they are sent, and deleted some time after no file names them.
    id: '004-object',
    sql: `CREATE TABLE files_object (
      object_key TEXT PRIMARY KEY,
      size_bytes INTEGER NOT NULL,
      written_at TEXT NOT NULL,
      unused_at TEXT
    );
    CREATE INDEX files_object_unused ON files_object (unused_at);
    ALTER TABLE files_stored ADD COLUMN object_key TEXT;
    CREATE INDEX files_stored_object ON files_stored (object_key)`,
  },
]
