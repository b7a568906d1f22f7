/**
 * `npm run first-answer`: how long the first hour of a new user takes: from a clone and from the package that `npm
 * pack` makes to the first answer, then a model in the page, a plugin, and a bot of Telegram, in a temporary folder. It
 * needs git and Debian's `chromium-headless-shell`, and installs packages as npm is configured. Servers of this machine
 * stand in for the model and for Telegram.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { measure, run, withDaemon } from './first-answer/commands.ts'
import type { Command } from './first-answer/commands.ts'
import { connectModel } from './first-answer/model.ts'
import { writePlugin } from './first-answer/plugin.ts'
import { connectTelegram } from './first-answer/telegram.ts'
import { FakeTelegram } from './support/platforms/telegram.ts'

const source = fileURLToPath(new URL('..', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'svc-first-answer-'))
const clone = join(folder, 'svc')
const prefix = join(folder, 'global')
const svc = join(prefix, 'bin/svc')

async function askFirst(command: Command): Promise<void> {
  const answer = await run(command)
  if (answer.trim() === '') throw new Error('the answer is empty')
}
const start = (home: string): string[] => ['start', '--port', '0', '--home', join(folder, home)]
const chat = (home: string): string[] => ['chat', '--message', 'hello', '--home', join(folder, home)]
const startInstalled = (home: string): Command => ({ name: svc, args: start(home), cwd: folder })

try {
  await measure('clone', {
    'git clone': () => run({ name: 'git', args: ['clone', '--quiet', source, clone], cwd: folder }),
    'npm install': () => run({ name: 'npm', args: ['install', '--no-audit', '--no-fund'], cwd: clone }),
    'npm start, first answer': () =>
      withDaemon({ name: 'npm', args: ['start', '--', ...start('home').slice(1)], cwd: clone }, () =>
        askFirst({ name: 'npx', args: ['svc', ...chat('home')], cwd: clone }),
      ),
  })
  await measure('package', {
    'npm pack': () =>
      run({ name: 'npm', args: ['pack', '--loglevel=error', '--pack-destination', folder], cwd: clone }),
    'npm install -g': async () => {
      const file = (await readdir(folder)).find((name) => name.endsWith('.tgz')) ?? ''
      const args = ['install', '-g', '--prefix', prefix, '--no-audit', '--no-fund', join(folder, file)]
      await run({ name: 'npm', args, cwd: folder })
    },
    'svc start, first answer': () =>
      withDaemon(startInstalled('package'), () => askFirst({ name: svc, args: chat('package'), cwd: folder })),
  })
  const inHome =
    (name: string) =>
    (words: readonly string[], input?: string): Promise<string> => {
      const args = [...words, '--home', join(folder, name)]
      return run({ name: svc, args, cwd: folder, ...(input !== undefined && { input }) })
    }
  await withDaemon(startInstalled('model'), connectModel)
  await withDaemon(startInstalled('plugin'), (daemon) =>
    writePlugin(daemon, { home: join(folder, 'plugin'), svc: (...words) => inHome('plugin')(words) }),
  )
  await using fake = await FakeTelegram.start()
  await mkdir(join(folder, 'telegram'), { mode: 0o700 })
  // Only the file may name an address of this machine.
  const config = `[channels.telegram]\nagent_name = "assistant"\nbase_url = "${fake.origin}"\n`
  await writeFile(join(folder, 'telegram/config.toml'), config, { mode: 0o600 })
  await withDaemon(startInstalled('telegram'), () => connectTelegram(fake, inHome('telegram')))
} finally {
  await rm(folder, { recursive: true, force: true })
}
