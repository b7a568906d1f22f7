import type { Done, Job } from './markdown-worker.ts'
import { WorkerQueue } from './worker-queue.ts'

/** A text that takes longer is shown unformatted: no answer may block the page. */
const MAX_MS = 4000

/** Converts Markdown into HTML in a worker. */
export const converter = new WorkerQueue<Job, Done>(
  () => new Worker(new URL('./markdown-worker.ts', import.meta.url), { type: 'module' }),
  MAX_MS,
)
