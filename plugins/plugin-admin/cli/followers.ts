import * as v from 'valibot'
import { callDaemon, commandLine, escapeControls, exits, Failure, print } from 'svc/cli'
import type { Connection } from 'svc/cli'

const Followers = v.looseObject({
  daemons: v.array(v.looseObject({ name: v.string(), self: v.boolean(), state: v.string(), reason: v.string() })),
})
type Follower = v.InferOutput<typeof Followers>['daemons'][number]

const WAIT_MS = 600_000
const LOOK_MS = 250

export const waitArg = {
  wait: {
    type: 'boolean',
    description: 'Wait until the other daemons on the database have done the same, and fail when it fails at one',
  },
} as const

/** The other daemons on the database, and what has come of the last change of a plugin there. */
export async function findOthers(connection: Connection, plugin: string): Promise<readonly Follower[]> {
  const path = `/api/plugins/${encodeURIComponent(plugin)}/daemons`
  const { daemons } = await callDaemon(connection, (client) => client.call('GET', path, Followers))
  return daemons.filter(({ self }) => !self)
}

/** The same once all of them are through with it. Throws `Failure` when one is not in ten minutes. */
export async function waitForOthers(connection: Connection, plugin: string): Promise<readonly Follower[]> {
  const end = performance.now() + WAIT_MS
  for (;;) {
    const others = await findOthers(connection, plugin)
    const waiting = namesOf(others, 'waiting')
    if (waiting === '') return others
    if (performance.now() > end)
      throw new Failure(
        exits.failed,
        `${waiting}: not done after ${WAIT_MS / 1000} s`,
        'they go on with it; their logs say more',
      )
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}

/** Says which of them follow, and what has come of it at those that are through. */
export function showOthers(others: readonly Follower[]): void {
  for (const { name, state, reason } of others)
    if (state !== 'waiting') print(escapeControls(`${name}: ${state}${reason === '' ? '' : `, ${reason}`}`))
  const waiting = namesOf(others, 'waiting')
  if (waiting !== '')
    print(
      `Other daemons do the same now, one after the other: ${waiting} (${commandLine('cluster status')} says where it fails).`,
    )
}

/** What the file of a home does not permit is its operator's will. */
export function exitCode(others: readonly Follower[]): number {
  return others.every(({ state }) => state === 'done' || state === 'refused') ? exits.ok : exits.failed
}

export function namesOf(others: readonly Follower[], state?: string): string {
  return escapeControls(
    others
      .filter((one) => state === undefined || one.state === state)
      .map(({ name }) => name)
      .join(', '),
  )
}
