import * as v from 'valibot'
import { definePlugin, settable } from 'svc/sdk'
import { readTime } from './time.ts'
import { clockTools } from './tools.ts'

export default definePlugin({
  name: 'clock',
  version: '1.0.0',
  config: settable(
    'only what is called local time',
    v.object({
      /** IANA name of what agents are told is local time; the machine's when absent. */
      timezone: v.optional(v.string()),
    }),
  ),
  setup({ config, tools }) {
    // A wrong name stops the plugin at start instead of failing every call.
    if (config.timezone !== undefined) readTime(new Date(), config.timezone)
    tools.add(...clockTools(config.timezone))
    return {}
  },
})
