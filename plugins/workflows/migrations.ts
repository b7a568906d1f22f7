import type { Migration } from 'svc/sdk'
import { runMigrations } from './runs/migrations.ts'

export const migrations: readonly Migration[] = [
  {
    id: '001-definitions',
    sql: `CREATE TABLE workflows_definition (
      id TEXT NOT NULL PRIMARY KEY,
      name TEXT NOT NULL,
      description TEXT NOT NULL,
      step_count INTEGER NOT NULL,
      -- The current one.
      revision INTEGER NOT NULL,
      -- In the folder of workflows; such a workflow is changed there only.
      file TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE INDEX workflows_definition_name ON workflows_definition (name);
    CREATE TABLE workflows_revision (
      workflow_id TEXT NOT NULL,
      revision INTEGER NOT NULL,
      -- The whole workflow, JSON.
      workflow TEXT NOT NULL,
      created_at TEXT NOT NULL,
      PRIMARY KEY (workflow_id, revision)
    )`,
  },
  ...runMigrations,
  {
    id: '102-run-by',
    // JSON: which agents may run it.
    sql: `ALTER TABLE workflows_definition ADD COLUMN run_by TEXT NOT NULL DEFAULT '[]'`,
  },
  { id: '103-run-order', sql: 'CREATE INDEX workflows_run_order ON workflows_run (created_at, id)' },
  {
    id: '104-files',
    // Daemons that share this database have folders of their own.
    sql: `CREATE TABLE workflows_file (
      home TEXT NOT NULL,
      file TEXT NOT NULL,
      digest TEXT NOT NULL,
      PRIMARY KEY (home, file)
    )`,
  },
  // JSON: the agent, turn and conversation that asked for it.
  { id: '105-asker', sql: 'ALTER TABLE workflows_run ADD COLUMN asker TEXT' },
  { id: '106-hops', sql: 'ALTER TABLE workflows_run ADD COLUMN hops INTEGER NOT NULL DEFAULT 0' },
]
