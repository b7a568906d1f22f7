import type { Broadcast } from './broadcast.ts'
import type { DatabaseServer } from './database-server.ts'
import type { Database, Migration, Statement } from './database.ts'

/** What differs between the engines of a `Database`, beside its SQL. */
export interface Engine {
  /** One batch of migrations, alone on the database. */
  commit(statements: readonly Statement[]): Promise<unknown>
  /** Made at every start. */
  readonly functions: readonly Statement[]
  readonly figures: Database['figures']
  /** Told how to make its tables. */
  broadcast(migrate: (name: string, migrations: readonly Migration[]) => Promise<unknown>): Promise<Broadcast>
  readonly server: DatabaseServer
  forget(): void
  snapshot(file: string): Promise<void>
  scrub(): Promise<void>
  close(): Promise<void>
}
