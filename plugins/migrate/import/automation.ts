import { commandLine } from 'svc/sdk'
import type { ChannelAccounts } from '../../channels/contract.ts'
import type { CronJobs } from '../../schedules/contract.ts'
import type { TriggerImports } from '../../triggers/contract.ts'
import type { WorkflowImports } from '../../workflows/contract.ts'
import type { Run } from './run.ts'

export interface AutomationDeps {
  readonly channels: ChannelAccounts | undefined
  readonly workflows: WorkflowImports | undefined
  readonly cronJobs: CronJobs | undefined
  readonly triggers: TriggerImports | undefined
}

/**
 * Accounts of platforms, disabled: the other system may still answer there, and a platform sends each message to one of
 * the two.
 */
export async function importChannels(run: Run, { channels }: AutomationDeps): Promise<void> {
  for (const { channel, account, fields, agent } of run.home.channels) {
    const key = `${channel}/${account}`
    await run.attempt('channel', key, async () => {
      if (!channels) return run.leave('channel', key, 'the plugin "channels" is not loaded')
      if ((await run.before('channel', key, key)) !== undefined) return
      const answers = agent === undefined ? undefined : (run.agents.get(agent)?.name ?? agent)
      const all = { ...fields, ...(answers !== undefined && { agent_name: answers }) }
      const given = { channel, id: account, enabled: false, fields: all }
      const isFree = await channels.add({ ...given, isCheck: true })
      if (!isFree && !(await run.wasBegun('channel', key)))
        return run.leave('channel', key, 'there is an account of this name')
      if (run.isDryRun) return run.made('channel', key, `${key}, disabled`)
      await run.begin('channel', key, key)
      await channels.add(given)
      await run.keep('channel', key, key, key)
      run.made(
        'channel',
        key,
        `${key}, disabled: stop the other system, then ${commandLine(`channels enable ${channel}`)}`,
      )
    })
  }
}

/** Workflows, then schedules and triggers, which are disabled: the other system may still run them. */
export async function importAutomation(run: Run, { workflows, cronJobs, triggers }: AutomationDeps): Promise<void> {
  const agents = new Map(
    run.home.agents.flatMap(({ key, name }) => {
      const made = run.agents.get(key)
      return made ? [[key, made.name] as const, [name, made.name] as const] : []
    }),
  )
  for (const { key, name, definition } of run.home.workflows)
    await run.attempt('workflow', name, async () => {
      if (!workflows) return run.leave('workflow', name, 'the plugin "workflows" is not loaded')
      if ((await run.before('workflow', key, name)) !== undefined) return
      const id = run.itemId('workflow', key)
      const { made, warnings } = await workflows.add(id, definition, { isCheck: run.isDryRun, agents })
      for (const text of warnings) run.warn(`workflow "${name}": ${text}`)
      await done(run, 'workflow', key, name, id, made)
    })
  for (const { key, name, agent, body, warnings } of run.home.jobs)
    await run.attempt('cron', name, async () => {
      if (!cronJobs) return run.leave('cron', name, 'the plugin "schedules" is not loaded')
      if ((await run.before('cron', key, name)) !== undefined) return
      const owner = agent === undefined ? [...run.agents.values()][0] : run.agents.get(agent)
      if (!owner) return run.leave('cron', name, `its agent "${agent ?? ''}" is not here`)
      for (const text of warnings) run.warn(`schedule "${name}": ${text}`)
      const id = run.itemId('cron', key)
      const made = await cronJobs.add(
        id,
        { ...body, agent_id: run.isDryRun ? owner.name : owner.id, enabled: false },
        { isCheck: run.isDryRun },
      )
      await done(run, 'cron', key, name, id, made)
    })
  for (const { key, agent, body } of run.home.triggers)
    await run.attempt('trigger', key, async () => {
      if (!triggers) return run.leave('trigger', key, 'the plugin "triggers" is not loaded')
      if ((await run.before('trigger', key, key)) !== undefined) return
      const owner = run.agents.get(agent)
      if (!owner) return run.leave('trigger', key, `its agent "${agent}" is not here`)
      const id = run.itemId('trigger', key)
      const made = await triggers.add(
        id,
        { ...body, agent_id: run.isDryRun ? owner.name : owner.id, enabled: false },
        { isCheck: run.isDryRun },
      )
      await done(run, 'trigger', key, key, id, made)
    })
}

/** It has an id of its own: one that is there came over before a crash. */
async function done(
  run: Run,
  kind: 'workflow' | 'cron' | 'trigger',
  key: string,
  name: string,
  id: string,
  made: boolean,
): Promise<void> {
  if (run.isDryRun) return run.made(kind, name, name)
  await run.keep(kind, key, name, id)
  const enable = kind === 'cron' ? commandLine(`schedule enable ${id}`) : commandLine(`trigger enable ${id}`)
  if (made) run.made(kind, name, kind === 'workflow' ? id : `disabled: stop the other system, then ${enable}`)
  else run.unchanged.push({ kind, name, destination: id })
}
