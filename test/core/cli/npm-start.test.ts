import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { startTerminal } from '../../support/terminal.ts'
import { main } from './process.ts'

vi.setConfig({ testTimeout: 40_000 })
const root = fileURLToPath(new URL('../../..', import.meta.url))
let folder: string
const env = {
  PATH: `${dirname(process.execPath)}${delimiter}${process.env['PATH']}`,
  npm_config_update_notifier: 'false',
}
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-npm-'))
  const { scripts } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { scripts: object }
  await mkdir(join(folder, 'dist'))
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ name: 'svc', version: '0.0.0', type: 'module', private: true, scripts }),
  )
  await writeFile(join(folder, 'dist/svc.js'), `await import(${JSON.stringify(main)})\n`)
})
afterAll(async () => {
  // The port closes before the process has ended, and it may write meanwhile.
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
})
/** Connects to the daemon at the address; `gone` settles when it ends. */
function watchDaemon(url: string): Promise<{ readonly gone: Promise<void> }> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(url)
    const socket = connect(Number(port), hostname)
    const gone = new Promise<void>((settle) => socket.once('close', () => settle()))
    socket
      .once('connect', () => resolve({ gone }))
      .once('error', reject)
      .resume()
  })
}
const inTerminal = async (redirected: boolean) => {
  const home = await mkdtemp(join(folder, 'home-'))
  const log = join(home, 'start.log')
  const terminal = startTerminal(`npm start -- --home ${home} --port 0${redirected ? ` 2>&1 | tee ${log}` : ''}`, {
    cwd: folder,
    env,
    cols: 200,
  })
  const [, url = ''] = await terminal.shows(/svc listening on (http:\S+)/)
  await terminal.shows(/Open the chat page/)
  return { terminal, ...(await watchDaemon(url)) }
}

it('SIGTERM to npm ends the daemon', async () => {
  const home = await mkdtemp(join(folder, 'home-'))
  const npm = spawn('npm', ['start', '--', '--home', home, '--port', '0'], {
    cwd: folder,
    stdio: 'pipe',
    env: { HOME: home, ...env },
  })
  let text = ''
  // The pipe is closed when the last process that writes to it is gone.
  const closed = new Promise<void>((resolve) => npm.once('close', () => resolve()))
  await new Promise<void>((resolve) => {
    npm.stdout.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      if (text.includes('Open the chat page')) resolve()
    })
    npm.stderr.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  })
  npm.kill('SIGTERM')
  await closed
  expect(text).toContain('stopped: SIGTERM')
})
it('Ctrl-C in the terminal ends it', async () => {
  const { terminal, gone } = await inTerminal(false)
  terminal.type('\u0003')
  await gone
  await terminal.ended
  expect(terminal.raw).toContain('stopped: SIGINT')
})
it.each([false, true])('the terminal that is closed ends it, with its output elsewhere: %s', async (redirected) => {
  const { terminal, gone } = await inTerminal(redirected)
  terminal.kill('SIGKILL')
  await gone
  await terminal.ended
})
