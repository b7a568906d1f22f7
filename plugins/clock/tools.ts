import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import type * as Time from './time.ts'

export function clockTools(timezone: string | undefined): readonly AnyTool[] {
  let loaded: Promise<typeof Time> | undefined
  const time = defineTool({
    name: 'system_time',
    risk: 'read',
    description: 'The current date and time: UTC, local time and its time zone, weekday. Answers JSON.',
    input: v.object({
      tz: v.optional(
        v.pipe(
          v.string(),
          v.maxLength(64),
          v.description('IANA time zone, such as Europe/Berlin. The local one when absent.'),
        ),
      ),
    }),
    async run({ tz }) {
      const { localZone, readTime } = await (loaded ??= import('./time.ts'))
      const now = new Date()
      return JSON.stringify(readTime(now, tz ?? timezone ?? localZone(now)))
    },
  })
  return [time]
}
