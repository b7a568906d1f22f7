import type { EntryPoint } from '../../journal/contract.ts'

/** The lane of the queue. */
export const EXTRACTION_LANE = 'memory-extraction'
/** Entry points through which a person speaks. What agents, clocks, events and programs say is nobody's word. */
export const SPOKEN: ReadonlySet<EntryPoint> = new Set<EntryPoint>([
  'rest',
  'sse',
  'websocket',
  'openai',
  'cli',
  'channel',
])
