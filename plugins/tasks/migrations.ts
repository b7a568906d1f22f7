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
  // JSON: where its texts may come from.
  { id: '003-task-labels', sql: "ALTER TABLE tasks_task ADD COLUMN labels TEXT NOT NULL DEFAULT '[]'" },
  // Rises with each change, so that of two changes at the same time one fails.
  { id: '004-task-revision', sql: 'ALTER TABLE tasks_task ADD COLUMN revision INTEGER NOT NULL DEFAULT 0' },
  { id: '005-task-creator', sql: 'CREATE INDEX tasks_task_creator ON tasks_task (created_by, status)' },
  { id: '006-task-worker', sql: 'CREATE INDEX tasks_task_worker ON tasks_task (claimed_by, status)' },
  // Whether the agent it is for gets a turn.
  { id: '007-task-wake', sql: 'ALTER TABLE tasks_task ADD COLUMN wake INTEGER NOT NULL DEFAULT 0' },
  // The turn that was begun for it last.
  { id: '008-task-turn', sql: 'ALTER TABLE tasks_task ADD COLUMN turn_id TEXT' },
  // JSON: the agent that posted it, by id, after those whose tasks it worked on when it did.
  { id: '009-task-behalf', sql: "ALTER TABLE tasks_task ADD COLUMN on_behalf TEXT NOT NULL DEFAULT '[]'" },
  // Lists and claims find rows by these alone: the texts of the others are long.
  { id: '010-task-status-order', sql: 'DROP INDEX tasks_task_status' },
  {
    id: '011-task-state',
    sql: `CREATE INDEX tasks_task_state
      ON tasks_task (status, created_at, id, assigned_to, created_by, claimed_by)`,
  },
  {
    id: '012-task-order',
    sql: 'CREATE INDEX tasks_task_order ON tasks_task (created_at, id, status, assigned_to, created_by, claimed_by)',
  },
  { id: '013-task-ended', sql: 'CREATE INDEX tasks_task_ended ON tasks_task (completed_at)' },
  // Daemons that what asked for it came through.
  { id: '014-task-hops', sql: 'ALTER TABLE tasks_task ADD COLUMN hops INTEGER NOT NULL DEFAULT 0' },
]
