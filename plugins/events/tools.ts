import { randomUUID } from 'node:crypto'
import * as v from 'valibot'
import { defineTool, Refusal } from 'svc/sdk'
import type { AnyTool, Hooks } from 'svc/sdk'
import type { Audit } from '../audit/contract.ts'
import type { EventsConfig } from './config.ts'
import { EventPublished } from './contract.ts'
import type { EventStore } from './store.ts'

export interface EventToolDeps {
  readonly store: EventStore
  readonly audit: Pick<Audit, 'entry'>
  readonly hooks: Hooks
  readonly config: EventsConfig
  readonly now: () => string
}

const EventType = v.pipe(
  v.string(),
  v.maxLength(128),
  v.regex(/^[a-z][a-z0-9_-]*(?:\.[a-z0-9_-]+)*$/, 'expected lower case words with dots, such as report.ready'),
  v.description('What happened, such as report.ready'),
)

export function eventTools({ store, audit, hooks, config, now }: EventToolDeps): readonly AnyTool[] {
  return [
    defineTool({
      // A published event reaches every listener, in this daemon and beyond it.
      name: 'event_publish',
      risk: 'write',
      refuses: ['Secret'],
      description: 'Publish an event to all listeners. Answers JSON with the event_id.',
      input: v.object({ event_type: EventType, payload: v.optional(v.unknown(), null) }),
      async run({ event_type: eventType, payload }, { agentId, labels = [] }) {
        const bytes = Buffer.byteLength(JSON.stringify(payload ?? null))
        if (bytes > config.payload_bytes)
          throw new Refusal(
            'payload_too_large',
            `payload: ${bytes} bytes of JSON are more than ${config.payload_bytes} (plugins.events.payload_bytes)`,
          )
        const event = { id: randomUUID(), eventType, payload: payload ?? null, agentId, at: now(), labels }
        const details = `event ${event.id} "${eventType}" published, ${bytes} bytes`
        await store.commit(store.insert(event), audit.entry({ event: 'event_published', agentId, details }))
        await hooks.emit(EventPublished, event)
        return JSON.stringify({ event_id: event.id })
      },
    }),
  ]
}
