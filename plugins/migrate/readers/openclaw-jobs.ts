import { omitUndefined } from 'svc/sdk'
import type { HomeDraft } from '../model.ts'
import { readFields } from '../source/parse.ts'
import { fieldsOf, listOf, numberOf, textOf, timeOf } from '../source/values.ts'
import type { Fields } from '../source/values.ts'
import type { ReaderDeps } from './openclaw.ts'

const COLUMNS = [
  'store_key',
  'job_id',
  'agent_id',
  'name',
  'delete_after_run',
  'schedule_kind',
  'schedule_expr',
  'schedule_tz',
  'every_ms',
  'at',
  'session_target',
  'trigger_script',
  'payload_kind',
  'payload_message',
  'delivery_channel',
  'delivery_to',
]

/**
 * The table `cron_jobs` of `state/openclaw.sqlite`, since version 2026.6.1; before that `cron/jobs.json`:
 * `{ version, jobs: [{ id, agentId, name, schedule, payload, delivery }] }`. The file may still be there beside the table.
 */
export async function readJobs(draft: HomeDraft, { folder, scratch }: ReaderDeps): Promise<void> {
  const database = await scratch.open(folder, 'state/openclaw.sqlite')
  const stored = new Set<string>()
  for (const row of database?.rows('cron_jobs', COLUMNS) ?? []) {
    const id = textOf(row['job_id'])
    // The same id in another store is another schedule.
    const key = id !== undefined && stored.has(id) ? `${textOf(row['store_key']) ?? ''} ${id}` : id
    if (key !== undefined) stored.add(key)
    if (textOf(row['trigger_script']) === undefined) readJob(draft, jobOf(row, key))
    else
      draft.leave('cron', textOf(row['name']) ?? key ?? 'a schedule', 'a program of the other system says when it runs')
  }
  const file = (await folder.has('cron/jobs.json')) ? await readFields(folder, 'cron/jobs.json') : undefined
  for (const entry of listOf(file?.['jobs'])) {
    const job = fieldsOf(entry)
    const id = textOf(job['id'])
    if (stored.size === 0) readJob(draft, job)
    else if (id === undefined || !stored.has(id))
      draft.leave(
        'cron',
        textOf(job['name']) ?? id ?? 'a schedule',
        'it is in the older cron/jobs.json only, and runs no more',
      )
  }
}

/** A row as the file had it. Of what it does, only a question to an agent is taken. */
function jobOf(row: Fields, key: string | undefined): Fields {
  const asks = ['agentTurn', 'systemEvent'].includes(textOf(row['payload_kind']) ?? '')
  return {
    id: key,
    agentId: row['agent_id'],
    name: row['name'],
    schedule: {
      kind: row['schedule_kind'],
      expr: row['schedule_expr'],
      tz: row['schedule_tz'],
      everyMs: row['every_ms'],
      at: row['at'],
    },
    deleteAfterRun: numberOf(row['delete_after_run']) === 1,
    sessionTarget: row['session_target'],
    payload: asks ? { message: row['payload_message'] } : {},
    delivery: { channel: row['delivery_channel'], to: row['delivery_to'] },
  }
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
  const goes = [textOf(target['channel']), receiverOf(target['to'])].filter((one) => one !== undefined).join(' ')
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

/** Whoever knows the path of a webhook may use it. */
function receiverOf(to: unknown): string | undefined {
  const text = textOf(to)
  return text !== undefined && URL.canParse(text) ? new URL(text).host || undefined : text
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
