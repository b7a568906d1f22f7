import {
  callDaemon,
  clientArgs,
  commandLine,
  connect,
  DaemonUnreachable,
  defineCommand,
  escapeControls,
  exits,
  explainError,
  Failure,
  note,
  print,
  printJson,
} from 'svc/cli'
import type { ClientArgs, Connection } from 'svc/cli'
import { Changed, Cluster, findMember } from './member.ts'
import type { Member } from './member.ts'

/** A little more than `plugins.cluster.stop_wait_secs`, which is how long it waits for its answers. */
const STOP_SECS = 330
const LOOK_MS = 250

export default defineCommand({
  description:
    'Let a daemon take nothing more over: a load balancer sends it nothing new, what runs ends there or goes on elsewhere.',
  args: {
    daemon: { type: 'positional', required: false, description: 'Name or id of the daemon (default: the one called)' },
    stop: {
      type: 'boolean',
      description: 'Stop it as well, once its requests have ended, and wait until it is gone',
      default: false,
    },
    timeout: {
      type: 'string',
      valueHint: 'seconds',
      description: `How long to wait until it is gone (default: ${STOP_SECS})`,
    },
    ...clientArgs,
  },
  examples: [
    ['svc cluster drain', 'the daemon of this home, which stays'],
    ['svc cluster drain web-2 --stop', 'another one, which ends'],
  ],
  async run(args) {
    const secs = args.timeout === undefined ? STOP_SECS : Number(args.timeout)
    if (!(secs > 0 && secs <= 86_400))
      throw new Failure(exits.usage, `--timeout: expected seconds, found "${args.timeout ?? ''}"`)
    const connection = await connect(args)
    const { member, changed } = await callDaemon(connection, async (client) => {
      const found = await findMember(client, args.daemon)
      const path = `/api/cluster/members/${encodeURIComponent(found.id)}/drain`
      return { member: found, changed: await client.call('POST', path, Changed, { body: { stop: args.stop } }) }
    })
    const name = escapeControls(member.name)
    if (args.stop) {
      if (!args.json) note(`${name} takes nothing more over, and stops when its requests have ended.`)
      await waitUntilGone(connection, args, member, secs)
    }
    if (args.json) printJson(args.stop ? { ...changed, stopped: true } : changed)
    else print(args.stop ? `${name} has stopped.` : `${name} takes nothing more over.`)
    return exits.ok
  },
})

async function waitUntilGone(connection: Connection, args: ClientArgs, member: Member, secs: number): Promise<void> {
  const end = performance.now() + secs * 1000
  while (await isThere(connection, args, member)) {
    if (performance.now() > end)
      throw new Failure(
        exits.failed,
        `${escapeControls(member.name)} was asked to stop and still runs after ${secs} s`,
        `its requests have not ended; wait longer with --timeout, or look at ${commandLine('cluster status')}`,
      )
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
  }
}
async function processOf(args: ClientArgs): Promise<number | undefined> {
  try {
    return (await connect(args)).pid
  } catch (error) {
    if (error instanceof Failure && error.exit === exits.notRunning) return undefined
    throw error
  }
}
/** One of this machine gives its home free as the last thing; another one leaves the database when its plugins are gone. */
async function isThere(connection: Connection, args: ClientArgs, { id, self }: Member): Promise<boolean> {
  if (self && connection.pid !== undefined) return (await processOf(args)) === connection.pid
  try {
    const { members } = await connection.client.call('GET', '/api/cluster', Cluster, { timeoutMs: 10_000 })
    return members.some((member) => member.id === id)
  } catch (error) {
    if (self && error instanceof DaemonUnreachable) return false
    throw explainError(error, connection)
  }
}
