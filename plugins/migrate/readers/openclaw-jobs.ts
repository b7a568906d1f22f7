import { commandLine, omitUndefined } from 'svc/sdk'
import type { HomeDraft } from '../model.ts'
import { readFields } from '../source/parse.ts'
import { fieldsOf, listOf, numberOf, textOf, timeOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import type { ReaderDeps } from './openclaw.ts'

/** `cron/jobs.json`: `{ version, jobs: [{ id, agentId, name, schedule, payload, delivery }] }`. */
export async function readJobs(draft: HomeDraft, { folder, scratch }: ReaderDeps): Promise<void> {
  const file = (await folder.has('cron/jobs.json')) ? await readFields(folder, 'cron/jobs.json') : undefined
  for (const entry of listOf(file?.['jobs'])) readJob(draft, fieldsOf(entry))
  if (file) return
  const database = await scratch.open(folder, 'state/openclaw.sqlite')
  if (database && database.columns('cron_jobs').length > 0)
    draft.leave(
      'cron',
      'state/openclaw.sqlite',
      `schedules in this database are not read: list them there, and make them here with \`${commandLine('schedule add')}\``,
    )
}

function readJob(draft: HomeDraft, job: Fields): void {
  const key = textOf(job['id'])
  const name = textOf(job['name']) ?? key ?? 'a schedule'
  const schedule = scheduleOf(fieldsOf(job['schedule']))
  const payload = fieldsOf(job['payload'])
  const message = textOf(payload['message']) ?? textOf(payload['text'])
  if (key === undefined) return draft.leave('cron', name, 'it has no id')
  if (schedule === undefined) return draft.leave('cron', name, 'its time cannot be read')
  if (message === undefined)
    return draft.leave('cron', name, 'it runs a command of the other system: only what an agent is asked comes over')
  const target = fieldsOf(job['delivery'])
  const goes = [textOf(target['channel']), textOf(target['to'])].filter((one) => one !== undefined).join(' ')
  draft.jobs.push({
    key,
    name,
    agent: textOf(job['agentId']),
    body: omitUndefined({
      name: nameOf(name),
      schedule,
      prompt: message,
      one_shot: job['deleteAfterRun'] === true ? true : undefined,
      session_mode: textOf(job['sessionTarget']) === 'main' ? 'persistent' : 'new',
    }),
    warnings: goes === '' ? [] : [`its answers went to ${goes}: add that as delivery_targets`],
  })
}

function scheduleOf(schedule: Fields): Fields | undefined {
  const kind = textOf(schedule['kind'])
  const expr = textOf(schedule['expr'])
  if (kind === 'cron' && expr !== undefined) return omitUndefined({ kind, expr, tz: textOf(schedule['tz']) })
  const everyMs = numberOf(schedule['everyMs'])
  if (kind === 'every' && everyMs !== undefined) return { kind, every_secs: Math.round(everyMs / 1000) }
  const at = timeOf(schedule['at'] ?? schedule['atMs'])
  return kind === 'at' && at !== undefined ? { kind, at } : undefined
}
/** Of the characters that a name may have here. */
export const nameOf = (name: string): string =>
  name
    .replaceAll(/[^\p{L}\p{N}_-]+/gu, ' ')
    .trim()
    .slice(0, 128) || 'imported'
