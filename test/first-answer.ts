/**
 * `npm run first-answer`: how long a new user waits for the first answer, from a clone and from the package that
 * `npm pack` makes, in a temporary folder. It needs git, and installs packages as npm is configured.
 */
import { spawn } from 'node:child_process'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const source = fileURLToPath(new URL('..', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'svc-first-answer-'))
const clone = join(folder, 'svc')
const prefix = join(folder, 'global')
const env = { ...process.env, PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter) }

interface Command {
  readonly name: string
  readonly args: readonly string[]
  readonly cwd: string
}

/** Rejects when the command fails. Returns its standard output. */
function run({ name, args, cwd }: Command): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = spawn(name, args, { cwd, env, stdio: ['ignore', 'pipe', 'inherit'] })
    let output = ''
    child.stdout.on('data', (bytes) => (output += String(bytes)))
    child.on('error', reject)
    child.on('close', (code) =>
      code === 0 ? resolve(output) : reject(new Error(`${name} ${args.join(' ')} ended with ${code}: ${output}`)),
    )
  })
}

/** Starts a daemon and runs the work once it listens; ends it afterwards. */
async function withDaemon({ name, args, cwd }: Command, work: () => Promise<void>): Promise<void> {
  const child = spawn(name, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], detached: true })
  const ended = new Promise<void>((resolve) => child.on('close', () => resolve()))
  try {
    await new Promise<void>((resolve, reject) => {
      let output = ''
      for (const stream of [child.stdout, child.stderr])
        stream.on('data', (bytes) => {
          output += String(bytes)
          if (/http:\/\/127\.0\.0\.1:\d+/.test(output)) resolve()
        })
      child.on('error', reject)
      child.on('close', (code) => reject(new Error(`the daemon ended with ${code}: ${output}`)))
    })
    await work()
  } finally {
    // npm is the parent of the daemon.
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGTERM')
    await ended
  }
}

/** Runs the steps one after the other and prints the seconds of each, and of all. */
async function measure(title: string, steps: Readonly<Record<string, () => Promise<unknown>>>): Promise<void> {
  const begun = performance.now()
  for (const [name, step] of Object.entries(steps)) {
    const started = performance.now()
    await step()
    console.log(`${title}: ${name}: ${seconds(started)} s`)
  }
  console.log(`${title}: all: ${seconds(begun)} s`)
}
const seconds = (since: number): string => ((performance.now() - since) / 1000).toFixed(1)

async function askFirst(command: Command): Promise<void> {
  const answer = await run(command)
  if (answer.trim() === '') throw new Error('the answer is empty')
}

try {
  const start = (home: string): readonly string[] => ['start', '--', '--port', '0', '--home', join(folder, home)]
  const chat = (home: string): readonly string[] => ['chat', '--message', 'hello', '--home', join(folder, home)]
  await measure('clone', {
    'git clone': () => run({ name: 'git', args: ['clone', '--quiet', source, clone], cwd: folder }),
    'npm install': () => run({ name: 'npm', args: ['install', '--no-audit', '--no-fund'], cwd: clone }),
    'npm start, first answer': () =>
      withDaemon({ name: 'npm', args: start('home'), cwd: clone }, () =>
        askFirst({ name: 'npx', args: ['svc', ...chat('home')], cwd: clone }),
      ),
  })
  const svc = join(prefix, 'bin/svc')
  await measure('package', {
    'npm pack': () =>
      run({ name: 'npm', args: ['pack', '--loglevel=error', '--pack-destination', folder], cwd: clone }),
    'npm install -g': async () => {
      const file = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? ''
      const args = ['install', '-g', '--prefix', prefix, '--no-audit', '--no-fund', join(folder, file)]
      await run({ name: 'npm', args, cwd: folder })
    },
    'svc start, first answer': () =>
      withDaemon({ name: svc, args: start('second-home').filter((word) => word !== '--'), cwd: folder }, () =>
        askFirst({ name: svc, args: chat('second-home'), cwd: folder }),
      ),
  })
} finally {
  await rm(folder, { recursive: true, force: true })
}
