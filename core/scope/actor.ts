import { AsyncLocalStorage } from 'node:async_hooks'

/** Who does what happens now, for the records of it. */
export interface Actor {
  readonly kind: 'operator' | 'anonymous' | 'platform' | 'user' | 'device' | 'agent'
  /** Of the device, the sign-in or the agent. */
  readonly id?: string
  /** For people to read. */
  readonly name?: string
  /** Where the request came from. */
  readonly address?: string
}

interface Acting {
  readonly actor: Actor
  recorded: boolean
}
const acting = new AsyncLocalStorage<Acting | undefined>()

/** Runs work that `actor` asked for, and all that it starts; `undefined` for what the daemon does by itself. */
export function runAs<T>(actor: Actor | undefined, work: () => T): T {
  return acting.run(actor && { actor, recorded: false }, work)
}
/** Who asked for what runs now; `undefined` when nobody did. */
export function currentActor(): Actor | undefined {
  return acting.getStore()?.actor
}
/** Says that a record names who asked for what runs now. */
export function noteRecorded(): void {
  const now = acting.getStore()
  if (now) now.recorded = true
}
export function isRecorded(): boolean {
  return acting.getStore()?.recorded === true
}

const KINDS = {
  operator: 'API key',
  anonymous: 'local, without a key',
  platform: 'webhook token',
  user: 'sign-in',
  device: 'device',
  agent: 'agent',
} as const

/** One line: `device "phone" (0f6a…) at 192.0.2.1`. */
export function describeActor({ kind, id, name, address }: Actor): string {
  return `${KINDS[kind]}${name === undefined ? '' : ` "${name}"`}${id === undefined ? '' : ` (${id})`}${address === undefined ? '' : ` at ${address}`}`
}
