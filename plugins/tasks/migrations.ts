import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-task',
    sql: `CREATE TABLE tasks_task (
      id TEXT NOT NULL PRIMARY KEY,
      title TEXT NOT NULL,
      description TEXT NOT NULL,
      status TEXT NOT NULL,
      -- Agents by id; whoever may claim it when nobody is named.
      assigned_to TEXT,
      created_by TEXT NOT NULL,
      claimed_by TEXT,
      -- Unique for each claim, so that a claim finds what it took.
      claim_id TEXT,
      claimed_at TEXT,
      lease_until TEXT,
      attempts INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      completed_at TEXT,
      result TEXT
    )`,
  },
  { id: '002-task-status', sql: 'CREATE INDEX tasks_task_status ON tasks_task (status, created_at, id)' },
]
