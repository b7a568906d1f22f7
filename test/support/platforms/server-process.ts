import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'

const START_MS = 20_000
const RETRY_MS = 10

/** Ports that nobody listens on now. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const servers = Array.from({ length: count }, () => createServer())
  const ports = await Promise.all(
    servers.map(async (server) => {
      await once(server.listen(0, '127.0.0.1'), 'listening')
      return (server.address() as AddressInfo).port
    }),
  )
  await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))))
  return ports
}

export interface ServerCommand {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  /** It accepts connections here once it runs. */
  readonly port: number
}
export interface ServerProcess extends AsyncDisposable {
  readonly folder: string
}

/**
 * Runs a server of a Debian package in a temporary folder, until it is disposed of. A package that is missing fails the
 * test: it says what to install.
 */
export async function startServer(
  debianPackage: string,
  prepare: (folder: string) => Promise<ServerCommand>,
): Promise<ServerProcess> {
  const folder = await mkdtemp(join(tmpdir(), `svc-${debianPackage}-`))
  const { command, args, env, port } = await prepare(folder)
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (data) => (output = (output + data).slice(-4000)))
  let failure: Error | undefined
  child.once('error', (error) => (failure = new Error(`Install the Debian package ${debianPackage}`, { cause: error })))
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  child.once('exit', (code) => (failure ??= new Error(`${command} ended with ${code}: ${output}`)))
  const dispose = async (): Promise<void> => {
    child.kill('SIGKILL')
    await ended
    await rm(folder, { recursive: true, force: true })
  }
  const lateAt = Date.now() + START_MS
  while (!(await accepts(port))) {
    failure ??= Date.now() > lateAt ? new Error(`${command} does not listen: ${output}`) : undefined
    if (failure) {
      await dispose()
      throw failure
    }
    await wait(RETRY_MS)
  }
  return { folder, [Symbol.asyncDispose]: dispose }
}

async function accepts(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false /* not yet */
  } finally {
    socket.destroy()
  }
}

/** One server for all tests of a file: started by the first that needs it, ended with `afterAll`. */
export class SharedServer<T extends AsyncDisposable> implements AsyncDisposable {
  readonly #start: () => Promise<T>
  #started: Promise<T> | undefined

  constructor(start: () => Promise<T>) {
    this.#start = start
  }
  get(): Promise<T> {
    return (this.#started ??= this.#start())
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await (await this.#started)?.[Symbol.asyncDispose]()
  }
}
