import { expect, it } from 'vitest'
import { EventStreamReader } from '../../../core/net/event-stream.ts'
import type { StreamedEvent } from '../../../core/net/event-stream.ts'

it('tells the ids of events, where there are some', () => {
  const events: StreamedEvent[] = []
  const reader = new EventStreamReader(
    (event) => events.push(event),
    () => new Error('too long'),
  )
  reader.feed(Buffer.from('id: 7\ndata: one\n\ndata: t'))
  reader.feed(Buffer.from('wo\n\n'))
  expect(events.map(({ id, data }) => [id, data])).toEqual([
    ['7', 'one'],
    [undefined, 'two'],
  ])
})
