import type { PluginDatabase } from 'svc/sdk'
import { WriterStore } from './store.ts'
import { Writers } from './writers.ts'

/** `home`: the id of the home of this daemon. */
export const openWriters = (db: PluginDatabase, home: string): Writers => new Writers(new WriterStore(db, home))
