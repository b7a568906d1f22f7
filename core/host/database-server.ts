import type { DatabaseServer as Contract } from '../storage/database-server.ts'
import { defineService } from './define.ts'

export type DatabaseServer = Contract
/** Connections to the database server for a package with SQL of its own. Provided by the core. */
export const DatabaseServer = defineService<DatabaseServer>()('database-server')
