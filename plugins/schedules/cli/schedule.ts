import * as v from 'valibot'
import {
  clientArgs,
  escapeControls,
  exits,
  Failure,
  findNearest,
  isObject,
  renderDuration,
  renderTime,
  suggest,
} from 'svc/cli'
import type { DaemonClient } from 'svc/cli'

export const Schedule = v.looseObject({
  id: v.string(),
  name: v.string(),
  agent_id: v.string(),
  cron: v.nullable(v.string()),
  schedule: v.unknown(),
  tz: v.nullable(v.string()),
  prompt: v.string(),
  enabled: v.boolean(),
  missed: v.string(),
  last_run: v.nullable(v.string()),
  next_run: v.nullable(v.string()),
  last_status: v.nullable(v.string()),
  reason: v.nullable(v.string()),
  workflow_id: v.nullable(v.string()),
  delivery_targets: v.array(
    v.looseObject({
      kind: v.string(),
      channel: v.optional(v.string()),
      to: v.optional(v.string()),
      url: v.optional(v.string()),
    }),
  ),
})
export type Schedule = v.InferOutput<typeof Schedule>
const List = v.looseObject({ schedules: v.array(Schedule), total: v.number() })

export const listSchedules = (client: DaemonClient): Promise<v.InferOutput<typeof List>> =>
  client.call('GET', '/api/schedules', List)

/** A schedule by its name, its id or the beginning of it. Throws a `Failure` that names those there are. */
export async function requireSchedule(client: DaemonClient, text: string): Promise<Schedule> {
  if (/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text))
    return client.call('GET', `/api/schedules/${text}`, Schedule)
  const { schedules } = await listSchedules(client)
  const named = schedules.filter(({ name }) => name === text)
  const found =
    named.length > 0 ? named : schedules.filter(({ id }) => text !== '' && id.startsWith(text.toLowerCase()))
  if (found[0] && found.length === 1) return found[0]
  if (found.length > 1)
    throw new Failure(
      exits.usage,
      `"${text}" is ${found.length} schedules`,
      `give an id: ${found.map(({ id }) => id).join(', ')}`,
    )
  const names = schedules.map(({ name }) => name)
  throw new Failure(
    exits.notFound,
    `there is no schedule "${text}"${suggest(findNearest(text, names))}`,
    schedules.length === 0 ? 'there are none' : `there are: ${names.join(', ')}`,
  )
}

/** When it is due, in words. */
export function whenOf({ cron, schedule, tz }: Schedule): string {
  if (cron !== null) return tz === null || tz === 'UTC' ? cron : `${cron} (${tz})`
  if (!isObject(schedule)) return ''
  return schedule['kind'] === 'every'
    ? `every ${renderDuration(Number(schedule['every_secs']))}`
    : `at ${renderTime(String(schedule['at']))}`
}
/** Where the results go, as `svc schedule add` takes it. */
export const targetsOf = ({ delivery_targets: targets }: Schedule): string =>
  targets.map(({ kind, channel, to, url }) => (kind === 'channel' ? `${channel}:${to}` : (url ?? kind))).join(', ')
export const stateOf = ({ enabled, last_status: last }: Schedule): string =>
  enabled ? (last === null ? 'waiting' : escapeControls(last).slice(0, 40)) : 'disabled'

export const scheduleArgs = {
  schedule: {
    type: 'positional',
    required: true,
    description: 'Name or id of the schedule, or the beginning of its id',
  },
  ...clientArgs,
} as const
