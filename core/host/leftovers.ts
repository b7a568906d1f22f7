import { AsyncLocalStorage, createHook } from 'node:async_hooks'

/** The setup that the present code belongs to. */
const setups = new AsyncLocalStorage<readonly Made[]>()

interface Made {
  readonly kind: string
  readonly isAlive: () => boolean
  readonly place: string | undefined
}

/** What a plugin made in its setup without its context, and what of it is still there. */
export interface Leftovers {
  /** One line each; empty when nothing is left. */
  list(): readonly string[]
}

/** Handles of Node that a plugin can only leave behind. */
const HANDLES = /^(TCPSERVERWRAP|PIPESERVERWRAP|TCPSOCKETWRAP|PIPEWRAP|UDPWRAP|PROCESSWRAP|FSEVENTWRAP|WORKER)$/

/**
 * Runs the setup of a plugin and notes the timers, handles and process listeners it makes with the globals and modules
 * of Node. The process is slower while it runs, and no more after it.
 */
export async function watchSetup<T>(
  setup: () => Promise<T>,
): Promise<{ readonly result: T; readonly leftovers: Leftovers }> {
  const made: Made[] = []
  const before = processListeners()
  const hook = createHook({
    init(_id, kind, _trigger, resource) {
      if ((kind !== 'Timeout' && !HANDLES.test(kind)) || setups.getStore() !== made) return
      const held = new WeakRef(resource)
      made.push({ kind, isAlive: () => isAlive(held.deref()), place: placeOf(new Error().stack) })
    },
  }).enable()
  try {
    const result = await setups.run(made, setup)
    const listeners = [...processListeners()].filter(([listener]) => !before.has(listener))
    return { result, leftovers: { list: () => [...listOf(made), ...listenersLeft(listeners)] } }
  } finally {
    // What listens opens its handle in the next turn.
    setImmediate(() => hook.disable())
  }
}

function listOf(made: readonly Made[]): readonly string[] {
  return made
    .filter((one) => one.isAlive())
    .map(({ kind, place }) => `${NAMES[kind] ?? kind}${place === undefined ? '' : ` (${place})`}`)
}
const NAMES: Readonly<Record<string, string>> = {
  Timeout: 'a timer',
  TCPSERVERWRAP: 'an open port',
  PIPESERVERWRAP: 'an open port',
  TCPSOCKETWRAP: 'a connection',
  PIPEWRAP: 'a connection',
  UDPWRAP: 'a UDP socket',
  PROCESSWRAP: 'a program',
  FSEVENTWRAP: 'a file watcher',
  WORKER: 'a worker',
}

/** Timers say whether they are destroyed; a closed handle has no reference. */
function isAlive(resource: object | undefined): boolean {
  if (resource === undefined) return false
  if ('_destroyed' in resource) return resource._destroyed === false
  return 'hasRef' in resource && typeof resource.hasRef === 'function' && resource.hasRef() === true
}

type Listeners = ReadonlyMap<unknown, string | symbol>
function processListeners(): Listeners {
  return new Map(
    process.eventNames().flatMap((event) => process.rawListeners(event as 'exit').map((one) => [one, event] as const)),
  )
}
function listenersLeft(listeners: readonly (readonly [unknown, string | symbol])[]): readonly string[] {
  const now = processListeners()
  return listeners.filter(([one]) => now.has(one)).map(([, event]) => `a listener of process event "${String(event)}"`)
}

/** The first line of the plugin's code: neither Node's nor the daemon's own. */
function placeOf(stack: string | undefined): string | undefined {
  return stack
    ?.split('\n')
    .filter((line) => !line.includes('node:'))
    .slice(2)
    .map((line) => /(\/[^()]+:\d+:\d+)/.exec(line)?.[1])
    .find((place) => place !== undefined && !place.includes('/node_modules/'))
}
