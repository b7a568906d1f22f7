import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    // What came over, so that nothing comes over twice. `id` is made of the source, the kind and the key there.
    id: '001-item',
    sql: `CREATE TABLE migrate_item (
      id TEXT NOT NULL PRIMARY KEY,
      run_id TEXT NOT NULL,
      kind TEXT NOT NULL,
      name TEXT NOT NULL,
      target TEXT NOT NULL,
      created_at TEXT NOT NULL
    )`,
  },
]
