import * as v from 'valibot'
import { definePlugin, settable } from 'svc/sdk'
import { clockTools } from './tools.ts'

export default definePlugin({
  name: 'clock',
  version: '1.0.0',
  config: settable(
    'only what is called local time',
    v.object({
      timezone: v.optional(
        v.pipe(
          v.string(),
          v.description('Time zone of agents by its IANA name, such as Europe/Berlin; that of the machine when unset.'),
        ),
      ),
    }),
  ),
  async setup({ config, tools }) {
    // A wrong name stops the plugin at start instead of failing every call.
    if (config.timezone !== undefined) (await import('./time.ts')).readTime(new Date(), config.timezone)
    tools.add(...clockTools(config.timezone))
    return {}
  },
})
