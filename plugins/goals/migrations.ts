import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-goal',
    sql: `CREATE TABLE goals_goal (
      id TEXT NOT NULL PRIMARY KEY,
      title TEXT NOT NULL,
      description TEXT NOT NULL,
      status TEXT NOT NULL,
      progress INTEGER NOT NULL,
      agent_id TEXT,
      parent_id TEXT,
      due_at TEXT,
      -- The agent that made it.
      created_by TEXT,
      -- Rises with every change, so that of two changes of the same state one fails.
      version INTEGER NOT NULL,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    )`,
  },
  { id: '002-goal-parent', sql: 'CREATE INDEX goals_goal_parent ON goals_goal (parent_id)' },
  { id: '003-goal-agent', sql: 'CREATE INDEX goals_goal_agent ON goals_goal (agent_id)' },
]
