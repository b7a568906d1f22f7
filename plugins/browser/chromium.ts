import { access, constants, realpath } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import { Refusal } from 'svc/sdk'
import type { Spawn } from 'svc/sdk'

/** The engine without its windows first: it starts faster and takes half the memory. */
const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome-stable',
  'google-chrome',
  'chrome',
]
/** What installs it, by the program that installs packages. */
const COMMANDS = [
  ['apt-get', { chromium: 'apt-get install chromium-headless-shell', sandbox: 'apt-get install bubblewrap perl' }],
  ['dnf', { chromium: 'dnf install chromium', sandbox: 'dnf install bubblewrap perl' }],
  ['apk', { chromium: 'apk add chromium', sandbox: 'apk add bubblewrap perl' }],
  ['pacman', { chromium: 'pacman -S chromium', sandbox: 'pacman -S bubblewrap perl' }],
] as const
function commandFor(spawn: Pick<Spawn, 'has'>, what: 'chromium' | 'sandbox'): string {
  const found = COMMANDS.find(([manager]) => spawn.has(manager))
  return found === undefined ? '' : ` with \`${found[1][what]}\``
}
/** Folders that every program sees. */
const VISIBLE = /^\/(?:usr|bin|lib|lib64|nix\/store|gnu\/store)\//

export interface Chromium {
  readonly path: string
  /** Its folder where it lies outside of those that every program sees. */
  readonly read: readonly string[]
}

/** Throws `service_unavailable` with what to install or set. */
export async function findChromium(
  spawn: Pick<Spawn, 'has' | 'find'>,
  configured: string | undefined,
): Promise<Chromium> {
  if (configured !== undefined) {
    try {
      await access(configured, constants.X_OK)
    } catch {
      throw new Refusal(
        'service_unavailable',
        `plugins.browser.chromium_path names ${configured}, where there is no program that can be started`,
      )
    }
    return withFolder(configured)
  }
  const name = NAMES.find((each) => spawn.has(each))
  if (name !== undefined) return withFolder((await spawn.find(name, '/')).path)
  throw new Refusal(
    'service_unavailable',
    `No Chromium was found: install one${commandFor(spawn, 'chromium')}, or name it in plugins.browser.chromium_path`,
  )
}

async function withFolder(path: string): Promise<Chromium> {
  const real = await realpath(path)
  return { path: real, read: VISIBLE.test(real) ? [] : [dirname(real)] }
}

/** Throws `service_unavailable` where a browser could not be confined, or would have another way to the network. */
export async function requireIsolation(
  spawn: Pick<Spawn, 'has' | 'isolation'>,
  system: NodeJS.Platform = process.platform,
): Promise<void> {
  const { level, network } = await spawn.isolation()
  if (level === 'bubblewrap' && network === 'proxy') return
  throw new Refusal(
    'service_unavailable',
    'Browsers run only where bubblewrap confines them and perl gives them a way to the network that svc decides on: ' +
      (system === 'linux' ? `install both${commandFor(spawn, 'sandbox')}` : 'bubblewrap is for Linux only'),
  )
}

/** The folder of playwright-core, and its module. */
export async function findPlaywright(): Promise<{ readonly folder: string; readonly module: string }> {
  const module = await realpath(createRequire(import.meta.url).resolve('playwright-core'))
  return { folder: dirname(module), module }
}
