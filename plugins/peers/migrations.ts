import type { Migration } from 'svc/sdk'

export const migrations: readonly Migration[] = [
  {
    id: '001-pin',
    sql: `CREATE TABLE peers_pin (
      node_id TEXT NOT NULL PRIMARY KEY,
      -- Hexadecimal digits. Another key for this node is refused.
      public_key TEXT NOT NULL,
      node_name TEXT NOT NULL,
      -- Where it was last.
      address TEXT NOT NULL,
      -- Milliseconds since 1970.
      pinned_at BIGINT NOT NULL,
      last_seen BIGINT NOT NULL
    )`,
  },
]
