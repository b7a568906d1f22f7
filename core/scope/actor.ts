import { AsyncLocalStorage } from 'node:async_hooks'

/** Who does what happens now, for the records of it. */
export interface Actor {
  readonly kind: string
  /** What records call the kind, when they do not use its name. */
  readonly label?: string
  /** Of whoever it is among its kind. */
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

const LABELS: Readonly<Record<string, string>> = {
  operator: 'API key',
  anonymous: 'local, without a key',
  platform: 'webhook token',
}

/** One line: `sign-in "Ann" (0f6a…) at 192.0.2.1`. */
export function describeActor({ kind, label, id, name, address }: Actor): string {
  const details = [
    name === undefined ? '' : ` "${name}"`,
    id === undefined ? '' : ` (${id})`,
    address === undefined ? '' : ` at ${address}`,
  ]
  return `${label ?? LABELS[kind] ?? kind}${details.join('')}`
}
