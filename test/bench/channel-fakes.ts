import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { onCore, root } from './processes.ts'

const POLL_MS = 100
const MAX_WAIT_MS = 60_000

export interface FakeAccount {
  readonly channel: string
  readonly config: Readonly<Record<string, unknown>>
  readonly person: string
}
export interface LoadReport {
  readonly total: number
  /** Messages that the webhook did not take, and why. */
  readonly refused: readonly string[]
  readonly offeredMs: number
}
export type FakesRequest =
  | { readonly url: string }
  | { readonly perSecond: number; readonly seconds: number }
  | { readonly shown: true }

/** Platforms in a process of their own. */
export interface Fakes extends AsyncDisposable {
  readonly accounts: readonly FakeAccount[]
  /** Where webhooks are sent from now on. */
  connect(url: string): void
  load(perSecond: number, seconds: number): Promise<LoadReport>
  /** The texts of all messages that the platforms show. */
  shown(): Promise<readonly string[]>
}

export async function startFakes(channels: readonly string[]): Promise<Fakes> {
  const [execPath, args] = onCore(1)
  const child = fork(join(root, 'test/bench/channel-fakes-process.ts'), channels, {
    execPath,
    execArgv: [...args, '--conditions=svc-source'],
    serialization: 'advanced',
  })
  const answer = async <T>(request?: FakesRequest): Promise<T> => {
    const controller = new AbortController()
    const { signal } = controller
    const ended = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`the platforms ended with ${String(code)}`)
    })
    if (request) child.send(request)
    try {
      const [message] = (await Promise.race([once(child, 'message', { signal }), ended])) as [T]
      return message
    } finally {
      controller.abort()
      ended.catch(() => undefined /* it is asked no more */)
    }
  }
  const accounts = await answer<readonly FakeAccount[]>()
  return {
    accounts,
    connect: (url) => void child.send({ url }),
    load: (perSecond, seconds) => answer({ perSecond, seconds }),
    shown: () => answer({ shown: true }),
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      child.disconnect()
      await ended
    },
  }
}

/** One account of the configuration file. */
export function accountToml(channel: string, id: string, fields: Readonly<Record<string, unknown>>): string {
  const lines = Object.entries(fields).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  return [`[[channels.${channel}]]`, `account_id = "${id}"`, ...lines, ''].join('\n')
}

/** Settles when so many accounts of a channel are connected. */
export async function waitForConnections(port: number, channel: string, count: number): Promise<void> {
  let states: readonly string[] = []
  for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
    const answer = await fetch(`http://127.0.0.1:${port}/api/channels/${channel}`)
    const { account_list: accounts } = (await answer.json()) as {
      account_list: { status: { state: string; last_error: string | null } }[]
    }
    if (accounts.filter(({ status }) => status.state === 'connected').length === count) return
    states = accounts.map(({ status }) => `${status.state} ${status.last_error ?? ''}`)
  }
  throw new Error(`${channel}: not every account is connected: ${[...new Set(states)].join(', ')}`)
}
