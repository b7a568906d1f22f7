import * as v from 'valibot'
import { defineTool } from 'svc/sdk'
import type { AnyTool } from 'svc/sdk'
import { readTime } from './time.ts'

export function clockTools(timezone: string | undefined): readonly AnyTool[] {
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
    run({ tz }) {
      // Read each time: the zone of the process follows the TZ variable.
      return Promise.resolve(
        JSON.stringify(readTime(new Date(), tz ?? timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone)),
      )
    },
  })
  return [time]
}
