import { describe, expect, it } from 'vitest'
import type { TurnEvent } from '../../../plugins/chat/contract.ts'
import { EventLog } from '../../../plugins/chat/turn/event-log.ts'

const text = (delta: string): TurnEvent => ({ type: 'text', delta })
const all = async (log: EventLog): Promise<TurnEvent[]> => {
  const events = []
  for await (const event of log) events.push(event)
  return events
}
const said = (events: readonly TurnEvent[]): string =>
  events.map((event) => (event.type === 'text' ? event.delta : `<${event.type}>`)).join('')

describe('the events of a turn', () => {
  it('are there from the start for whoever comes late, with the text joined', async () => {
    const log = new EventLog()
    for (const event of [
      { type: 'thinking' } as const,
      text('a'),
      text('b'),
      { type: 'tool-started', tool: 't', callId: 'c' } as const,
      text('d'),
    ])
      log.push(event)
    log.end()
    expect(await all(log)).toEqual([
      { type: 'thinking' },
      text('ab'),
      { type: 'tool-started', tool: 't', callId: 'c' },
      text('d'),
    ])
  })

  it('give every reader the same text in order, at its own pace', async () => {
    const log = new EventLog()
    const fast = all(log)
    const slow = log[Symbol.asyncIterator]()
    const events: TurnEvent[] = []
    let expected = ''
    for (let n = 0; n < 1000; n++) {
      log.push(text(`${n} `))
      expected += `${n} `
      if (n % 100 === 0) {
        const step = await slow.next()
        if (!step.done) events.push(step.value)
      }
    }
    log.end()
    for (let step = await slow.next(); !step.done; step = await slow.next()) events.push(step.value)
    expect(said(await fast)).toBe(expected)
    expect(said(events)).toBe(expected)
    expect(events.length).toBeLessThan(15)
  })

  it('bring the first delta at once and join those that come in one piece', async () => {
    const log = new EventLog()
    const reading = all(log)
    for (const delta of ['a', 'b', 'c', 'd']) log.push(text(delta))
    log.end()
    expect(await reading).toEqual([text('a'), text('bcd')])
  })

  it('end with the failure, after everything that was said', async () => {
    const log = new EventLog()
    log.push(text('half'))
    const failure = new Error('cut')
    log.fail(failure)
    const reader = log[Symbol.asyncIterator]()
    expect(await reader.next()).toEqual({ done: false, value: text('half') })
    await expect(reader.next()).rejects.toBe(failure)
  })

  it('let a reader leave while it waits', async () => {
    const log = new EventLog()
    const reader = log[Symbol.asyncIterator]()
    const waiting = reader.next()
    await reader.return?.()
    expect(await waiting).toEqual({ done: true, value: undefined })
    log.push(text('nobody'))
    expect(await reader.next()).toEqual({ done: true, value: undefined })
  })
})
