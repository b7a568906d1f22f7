import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-limits',
    // The empty scope means all agents. NULL: as configured or as in the manifest; 0: unlimited.
    sql:
      `CREATE TABLE budgets_limit (
      scope TEXT PRIMARY KEY, hour_usd REAL, day_usd REAL, month_usd REAL, hour_tokens INTEGER, ` +
      `alert_threshold REAL, default_hour_tokens INTEGER
    );
    CREATE TABLE budgets_notice (scope TEXT NOT NULL, notice TEXT NOT NULL, told_at TEXT NOT NULL, ` +
      `PRIMARY KEY (scope, notice));`,
  },
  {
    id: '002-kin',
    sql:
      'CREATE TABLE budgets_kin (ancestor_id TEXT NOT NULL, agent_id TEXT NOT NULL, PRIMARY KEY (ancestor_id, ' +
      'agent_id))',
  },
]
