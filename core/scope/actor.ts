import { AsyncLocalStorage } from 'node:async_hooks'

/** The actor of the present work, for records. */
export interface Actor {
  readonly kind: string
  /** Name of the kind in records, if it differs. */
  readonly label?: string
  /** Id of the actor among its kind. */
  readonly id?: string
  /** Id of the person, as `Holder.subject`. */
  readonly subject?: string
  /** For people to read. */
  readonly name?: string
  /** What was presented beside the API key, as text that opens nothing; `Daemon.isHeld` tells whether it still counts. */
  readonly credential?: string
  /** Where the request came from. */
  readonly address?: string
  /** Id of the work in which it acts and which led to all that it does. */
  readonly origin?: string
}

interface Acting {
  readonly actor: Actor
  recorded: boolean
}
const acting = new AsyncLocalStorage<Acting | undefined>()

/** Runs work that `actor` requested, and everything it starts; `undefined` for work of the daemon itself. */
export function runAs<T>(actor: Actor | undefined, work: () => T): T {
  return acting.run(actor && { actor, recorded: false }, work)
}
/** The actor that requested the present work; `undefined` if nobody did. */
export function currentActor(): Actor | undefined {
  return acting.getStore()?.actor
}
/** Notes that a record names the actor of the present work. */
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
export function describeActor({ kind, label, id, name, address, origin }: Actor): string {
  const details = [
    name === undefined ? '' : ` "${name}"`,
    id === undefined ? '' : ` (${id})`,
    address === undefined ? '' : ` at ${address}`,
    origin === undefined ? '' : ` in ${origin}`,
  ]
  return `${label ?? LABELS[kind] ?? kind}${details.join('')}`
}
