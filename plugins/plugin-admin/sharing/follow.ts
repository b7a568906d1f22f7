import { messageOf, pluginsLoaded } from 'svc/internal'
import type { Broadcast, Daemon } from 'svc/internal'
import type { Hooks, Jobs, Logger, PluginContext } from 'svc/sdk'
import { MemberEnded, MemberProblemsListed } from '../../cluster/contract.ts'
import type { Settings } from '../settings.ts'
import type { PluginSharing } from './sharing.ts'

export const TOPIC = 'plugin-admin.changes'
/** Should a message be lost, or a daemon end in its turn. */
const LOOK_MS = 60_000
/** In the health of the daemon. */
const PART = 'plugins of the other daemons'

export interface FollowDeps extends Pick<PluginContext<Settings, {}, {}>, 'config' | 'own' | 'run' | 'leaving'> {
  readonly hooks: Hooks
  readonly jobs: Jobs
  readonly log: Logger
  readonly services: { readonly broadcast: Broadcast; readonly daemon: Daemon }
}

/**
 * Adopts what other daemons on the database install and remove: at once, and what was missed at the start. A daemon that
 * starts is not ready before that.
 */
export function followOthers(deps: FollowDeps, sharing: () => Promise<PluginSharing | undefined>): void {
  const { hooks, jobs, leaving, log, own, run, services } = deps
  const start = awaitFirstPass(deps)
  const adoptAll = async (): Promise<void> => {
    await pluginsLoaded(services.daemon, 'plugin-admin', leaving)
    if (leaving.aborted) return
    const shared = await sharing()
    await shared?.adopt()
    services.daemon.setWarnings(PART, (await shared?.ownFailures()) ?? [])
    if (!shared?.isBehind) start.done()
  }
  const adopt = (): void => {
    const work = run(adoptAll).catch((error: unknown) => {
      start.failed(messageOf(error))
      log.warn('plugins of other daemons were not taken over', error)
    })
    services.daemon.trackWork(work)
  }
  const subscription = services.broadcast.on(TOPIC, { heard: adopt, missed: adopt })
  own('messages', () => subscription[Symbol.dispose]())
  own('plugins that were not taken over', () => services.daemon.setWarnings(PART, []))
  hooks.on(MemberEnded, adopt)
  hooks.on(MemberProblemsListed, async (listed) => [...listed, ...((await (await sharing())?.problems()) ?? [])])
  jobs.every('changes of other daemons', LOOK_MS, async () => adopt())
  adopt()
}

/** A daemon that serves already stays ready when this plugin is loaded anew. */
function awaitFirstPass({ config, own, services: { daemon } }: FollowDeps): {
  /** It has what the others have, or was refused it. */
  readonly done: () => void
  /** It serves without: another pass may succeed. */
  readonly failed: (reason: string) => void
} {
  if (daemon.isListening) return { done: () => {}, failed: () => {} }
  let isOver = false
  const failed = (reason: string): void => {
    if (!isOver) daemon.setImpaired(PART, `not all of them are here: ${reason}`)
  }
  const { ready_wait_secs: secs } = config
  const timer = setTimeout(
    () => failed(`waited ${secs} s (plugins.plugin-admin.ready_wait_secs) for the other daemons`),
    secs * 1000,
  )
  const done = (): void => {
    isOver = true
    clearTimeout(timer)
    daemon.setUnready(PART, undefined)
  }
  own(PART, done)
  daemon.setUnready(PART, 'those that were installed meanwhile are being installed here')
  return { done, failed }
}
