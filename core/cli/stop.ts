import * as v from 'valibot'
import { DaemonRefusal, DaemonUnreachable } from '../net/daemon-client.ts'
import { HomeInUse, lockHome } from '../storage/lock.ts'
import { clientArgs, defineCommand } from './command.ts'
import { connect, explainError } from './connect.ts'
import type { Connection } from './connect.ts'
import { exits, Failure } from './failure.ts'
import { print, printJson } from './output.ts'
import { commandFor } from './home-location.ts'

export default defineCommand({
  description: 'Stop the running daemon in order and wait until it is gone.',
  args: {
    ...clientArgs,
    timeout: { type: 'string', valueHint: 'seconds', description: 'How long to wait for it (default: 30)' },
  },
  examples: [
    ['svc stop', 'end the daemon of the home'],
    ['svc stop --timeout 120', 'give long answers time to end'],
  ],
  async run(args) {
    const timeoutSecs = args.timeout === undefined ? 30 : Number(args.timeout)
    if (!(timeoutSecs > 0 && timeoutSecs <= 86_400))
      throw new Failure(exits.usage, `--timeout: expected seconds, found "${args.timeout ?? ''}"`)
    const connection = await connect(args)
    const how = await shutdown(connection)
    if (connection.pid !== undefined && !(await isGone(connection.pid, timeoutSecs * 1000))) {
      throw new Failure(
        exits.failed,
        `process ${connection.pid} was asked to stop and still runs after ${timeoutSecs} s`,
        `wait longer with --timeout, or end it with: kill -9 ${connection.pid}`,
      )
    }
    if (args.json) printJson({ status: 'stopped', pid: connection.pid ?? null, how })
    else
      print(
        connection.pid === undefined
          ? `asked ${connection.client.url} to stop`
          : `svc stopped (process ${connection.pid})`,
      )
    return exits.ok
  },
})

async function shutdown(connection: Connection): Promise<'api' | 'signal'> {
  try {
    await connection.client.call('POST', '/api/shutdown', v.unknown(), { timeoutMs: 5000 })
    return 'api'
  } catch (error) {
    const refused = error instanceof DaemonRefusal
    // Who may send a signal may stop it; the key is about the network.
    if (connection.pid === undefined || !(refused || error instanceof DaemonUnreachable))
      throw explainError(error, connection)
    const pid = await findHolder(connection.location.home)
    if (pid === undefined)
      throw new Failure(
        exits.notRunning,
        `no svc is running in ${connection.location.home}`,
        `start it with ${commandFor(connection.location, 'start')}`,
      )
    try {
      process.kill(pid, 'SIGTERM')
    } catch (failure) {
      throw new Failure(
        exits.refused,
        `process ${pid} does not take signals from this user`,
        'run this as the user who started it',
        { cause: failure },
      )
    }
    return 'signal'
  }
}
/** The process that holds the lock of the home: a number in a file alone could be that of a stranger by now. */
async function findHolder(home: string): Promise<number | undefined> {
  try {
    using _ = await lockHome(home)
    return undefined
  } catch (error) {
    if (error instanceof HomeInUse) return error.pid
    throw error
  }
}
async function isGone(pid: number, withinMs: number): Promise<boolean> {
  const end = performance.now() + withinMs
  for (;;) {
    try {
      process.kill(pid, 0)
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return true
    }
    if (performance.now() > end) return false
    // Only a parent is told when a process ends; anybody else has to look.
    await new Promise((resolve) => setTimeout(resolve, 25))
  }
}
