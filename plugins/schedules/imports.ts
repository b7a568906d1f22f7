import { parse } from 'svc/sdk'
import { JobBody } from './body.ts'
import type { CronJobs } from './contract.ts'
import type { Runtime } from './runtime.ts'

/** What comes from elsewhere, under an id that is the same each time. */
export async function add(
  { schedules }: Pick<Runtime, 'schedules'>,
  ...[id, body, { isCheck = false } = {}]: Parameters<CronJobs['add']>
): Promise<boolean> {
  if (await schedules.find(id)) return false
  const given = parse(JobBody, body, 'cron job')
  if (isCheck) await schedules.prepare(given, id, { id: '', name: '' })
  else await schedules.create(given, id)
  return true
}
