import type { Broadcast as Contract } from '../storage/broadcast.ts'
import { defineService } from './define.ts'

export type Broadcast = Contract
/** Messages between the daemons on one database. Provided by the core. */
export const Broadcast = defineService<Broadcast>()('broadcast')
