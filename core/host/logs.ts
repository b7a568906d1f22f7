import type { LogFeed } from '../log/feed.ts'
import { defineService } from './define.ts'

/** The log of the daemon, provided by the core. */
export type Logs = Pick<LogFeed, 'recent' | 'follow'>
export const Logs = defineService<Logs>()('logs')
