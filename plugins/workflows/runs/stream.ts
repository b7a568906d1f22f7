import type { Clock } from 'svc/internal'
import { sleep } from 'svc/internal'
import type { ServerSentEvent } from 'svc/sdk'
import type { RunChanges } from './changes.ts'
import { isActive } from './service.ts'
import type { RunStore } from './store.ts'
import { toItem, toStepView } from './views.ts'
import type { RunEvent } from './views.ts'

/** Another daemon may move the run. */
const POLL_MS = 1_000

export interface RunStreamDeps {
  readonly store: RunStore
  readonly changes: RunChanges
  readonly clock: Clock
}

/**
 * What happened to a run so far, then what happens, until it has ended: `step` for each attempt that changed and `run`
 * behind it. The id of an event is the revision of the run: a reader that comes back gets what it missed.
 */
export async function* followRun(
  { store, changes, clock }: RunStreamDeps,
  id: string,
  after: number,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent> {
  let revision = after
  while (!signal.aborted) {
    const changed = Promise.withResolvers<void>()
    const stop = changes.listen((runId) => void (runId === id && changed.resolve()))
    try {
      const run = await store.find(id)
      if (!run) return
      if (run.revision > revision) {
        const attempts = await store.attempts(id, revision)
        yield* attempts.map((attempt) => encode({ type: 'step', run_id: id, step: toStepView(attempt) }))
        revision = run.revision
        yield encode({ type: 'run', run: toItem(run) }, String(revision))
      }
      if (!isActive(run.state)) return
      await untilChange(changed.promise, clock, signal)
    } finally {
      stop()
    }
  }
}

/** All runs that go on, then each that changes, here or at another daemon. */
export async function* followAll(
  { store, changes, clock }: RunStreamDeps,
  signal: AbortSignal,
): AsyncGenerator<ServerSentEvent> {
  const changed = new Set<string>()
  let notify = Promise.withResolvers<void>()
  const stop = changes.listen((runId) => {
    changed.add(runId)
    notify.resolve()
  })
  /** The revision of each that goes on, as it was told last. */
  let told: ReadonlyMap<string, number> = new Map()
  try {
    while (!signal.aborted) {
      const candidates = new Set([...changed, ...told.keys()])
      changed.clear()
      const active = await store.active()
      for (const { id } of active) candidates.delete(id)
      const ended = await Promise.all([...candidates].map((id) => store.find(id)))
      const runs = [...active.filter(({ id, revision }) => told.get(id) !== revision), ...ended]
      told = new Map(active.map(({ id, revision }) => [id, revision]))
      yield* runs.filter((run) => run !== undefined).map((run) => encode({ type: 'run', run: toItem(run) }))
      notify = Promise.withResolvers()
      if (changed.size === 0) await untilChange(notify.promise, clock, signal)
    }
  } finally {
    stop()
  }
}

const encode = (event: RunEvent, id?: string): ServerSentEvent => ({
  event: event.type,
  data: JSON.stringify(event),
  ...(id !== undefined && { id }),
})

/** Also settles when the reader leaves. */
async function untilChange(changed: Promise<void>, clock: Clock, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const stop = new AbortController()
  const both = AbortSignal.any([signal, stop.signal])
  try {
    await Promise.race([changed, sleep(clock, POLL_MS, both).catch(() => undefined)])
  } finally {
    stop.abort()
  }
}
