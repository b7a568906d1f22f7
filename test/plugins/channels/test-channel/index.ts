import { defineChannel } from 'svc/channels'
import type { ChannelAdapter } from 'svc/channels'

/** A channel whose adapter is that of the running test. */
export default defineChannel('1.0.0', {
  name: 'test_chat',
  title: 'Test chat',
  category: 'developer',
  description: 'A platform that lives in the test',
  setup: async () => ({
    default: { icon: 'TC', difficulty: 'easy', minutes: 1, steps: ['Write to the bot.', 'Copy its token.'] },
  }),
  load: async () => {
    const adapter: unknown = Reflect.get(globalThis, Symbol.for('svc.test.adapter'))
    if (adapter === undefined) throw new Error('the test has no adapter')
    return { default: adapter as ChannelAdapter }
  },
})
