import { pluginsLoaded } from 'svc/internal'
import type { Broadcast, Daemon } from 'svc/internal'
import type { Hooks, Jobs, Logger, PluginContext } from 'svc/sdk'
import { MemberEnded, MemberProblemsListed } from '../../cluster/contract.ts'
import type { PluginSharing } from './sharing.ts'

export const TOPIC = 'plugin-admin.changes'
/** Should a message be lost, or a daemon end in its turn. */
const LOOK_MS = 60_000

export interface FollowDeps extends Pick<PluginContext<object, {}, {}>, 'own' | 'run' | 'leaving'> {
  readonly hooks: Hooks
  readonly jobs: Jobs
  readonly log: Logger
  readonly services: { readonly broadcast: Broadcast; readonly daemon: Daemon }
}

/** Adopts what other daemons on the database install and remove: at once, and what was missed at the start. */
export function followOthers(deps: FollowDeps, sharing: () => Promise<PluginSharing | undefined>): void {
  const { hooks, jobs, leaving, log, own, run, services } = deps
  const adopt = (): void => {
    const work = run(async () => {
      await pluginsLoaded(services.daemon, 'plugin-admin', leaving)
      if (!leaving.aborted) await (await sharing())?.adopt()
    }).catch((error: unknown) => log.warn('plugins of other daemons were not taken over', error))
    services.daemon.trackWork(work)
  }
  const subscription = services.broadcast.on(TOPIC, { heard: adopt, missed: adopt })
  own('messages', () => subscription[Symbol.dispose]())
  hooks.on(MemberEnded, adopt)
  hooks.on(MemberProblemsListed, async (listed) => [...listed, ...((await (await sharing())?.problems()) ?? [])])
  jobs.every('changes of other daemons', LOOK_MS, async () => adopt())
  adopt()
}
