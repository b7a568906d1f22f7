import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { expect, it } from 'vitest'
import { startDaemon } from '../support/daemon.ts'

/** Notes each file that the loader of Node reads, and at the end the modules of Node that were loaded. */
const recorder = (log: string): string => `
  import { registerHooks } from 'node:module'
  import { appendFileSync } from 'node:fs'
  registerHooks({
    load(url, context, next) {
      appendFileSync(${JSON.stringify(log)}, url + '\\n')
      return next(url, context)
    },
  })
  process.on('exit', () => appendFileSync(${JSON.stringify(log)}, process.moduleLoadList.join('\\n')))`

/** Opens a socket of the chat, and closes it. */
async function useSocket(url: string): Promise<void> {
  const [agent] = (await (await fetch(`${url}/api/agents`)).json()) as { id: string }[]
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/agents/${agent?.id}/ws`)
  await new Promise((resolve, reject) => {
    socket.addEventListener('message', resolve, { once: true })
    socket.addEventListener('error', () => reject(new Error('the socket failed')), { once: true })
  })
  socket.close()
}

it('adapters that are not enabled are not read, and the host of channels is read by the first request', async () => {
  const home = await mkdtemp(join(tmpdir(), 'svc-start-files-'))
  const log = join(home, 'files.log')
  const hook = join(home, 'recorder.mjs')
  await writeFile(hook, recorder(log))
  // On a loaded machine the first run of the probes would come in between, with files of its own.
  await writeFile(join(home, 'config.toml'), '[plugins.security]\nfirst_probe_ms = 3600000\n', { mode: 0o600 })
  /** Names of the modules behind the files that were read, without the hash of their content. */
  const modules = async (): Promise<readonly string[]> =>
    (await readFile(log, 'utf8')).split('\n').map((url) => basename(url).replace(/(?:-[\w-]{8})?\.m?js$/, ''))
  try {
    await using daemon = await startDaemon({ home, env: { NODE_OPTIONS: `--import=${hook}` } })
    const ask = async (path: string, init: RequestInit = {}): Promise<unknown> => {
      const answer = await fetch(`${daemon.url}${path}`, init)
      return answer.json()
    }
    expect(await ask('/api/health')).toMatchObject({ status: 'ok' })
    const atStart = await modules()
    expect(atStart).toContain('svc')
    expect(atStart.filter((name) => name === 'host' || name === 'adapter' || name === 'mqtt')).toEqual([])

    const { channels } = (await ask('/api/channels')) as { channels: { name: string; available: boolean }[] }
    expect(channels.filter(({ available }) => available).length).toBeGreaterThanOrEqual(12)
    const listed = await modules()
    expect(listed).toContain('host')
    expect(listed).not.toContain('adapter')

    // The fields of a channel are those of its adapter: this one is read, and no other.
    expect(await ask('/api/channels/irc')).toMatchObject({ name: 'irc', available: true })
    expect((await modules()).filter((name) => name === 'adapter')).toHaveLength(1)

    // `fetch` of Node, and its classes, take 14 MB when the first of them is touched.
    await useSocket(daemon.url)
    expect(await modules()).toContain('socket-adapter')
    expect(await daemon.stop()).toBe(0)
    const all = await readFile(log, 'utf8')
    expect(all).toContain('NativeModule net')
    expect(all).not.toContain('undici')
  } finally {
    await rm(home, { recursive: true, force: true })
  }
})
