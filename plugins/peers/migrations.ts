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
  {
    id: '002-several-daemons',
    sql: `CREATE TABLE peers_asked (
      turn_id TEXT NOT NULL PRIMARY KEY,
      node_id TEXT NOT NULL,
      -- Milliseconds since 1970.
      asked_at BIGINT NOT NULL,
      -- NULL until the turn has ended.
      tokens BIGINT
    );
    CREATE INDEX peers_asked_node ON peers_asked (node_id, asked_at);
    CREATE INDEX peers_asked_time ON peers_asked (asked_at);
    CREATE TABLE peers_nonce (
      nonce TEXT NOT NULL PRIMARY KEY,
      -- Milliseconds since 1970.
      expires_at BIGINT NOT NULL
    );
    CREATE INDEX peers_nonce_time ON peers_nonce (expires_at);
    CREATE TABLE peers_dialer (
      -- An entry of network.peers.
      target TEXT NOT NULL PRIMARY KEY,
      -- The id of the daemon that dials it.
      owner TEXT NOT NULL
    )`,
  },
]
