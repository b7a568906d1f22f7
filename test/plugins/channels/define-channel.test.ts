import { expect, it } from 'vitest'
import { defineChannel } from 'svc/channels'

it('a channel is never connected twice during a reload', () => {
  const channel = defineChannel('1.0.0', {
    name: 'parley',
    title: 'Parley',
    category: 'messaging',
    description: 'A chat of somebody else',
    load: () => Promise.reject(new Error('not in this test')),
  })
  expect(channel.reload).toBe('exclusive')
})
