import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { platforms } from '../support/platforms/all.ts'
import type { Result } from './figures.ts'
import { Home, median, root, startSvc } from './processes.ts'

const ROUNDS = 15
const LIMIT_MS = 1
const SOURCES = [
  'core',
  'plugins',
  'adapters',
  'skills',
  'templates',
  'hands',
  'svc.config.ts',
  'package.json',
  'tsconfig.json',
]
const run = promisify(execFile)

/** A second start with every channel, none of which is configured, against one of a build without any, in turns. */
export async function channelStart(): Promise<readonly Result[]> {
  const count = Object.keys(platforms).length
  const bare = await mkdtemp(join(tmpdir(), 'svc-without-channels-'))
  try {
    await buildWithoutChannels(bare)
    await run(process.execPath, ['core/build/build.ts'], { cwd: root })
    using all = new Home()
    using none = new Home()
    const time = async (home: Home, folder: string): Promise<Start> => {
      await using svc = await startSvc(home, {}, [], folder)
      return { ms: svc.startedMs, cpu: svc.runUs() / 1000 }
    }
    await time(all, root)
    await time(none, bare)
    const starts: { readonly all: Start[]; readonly none: Start[] } = { all: [], none: [] }
    for (let round = 0; round < ROUNDS; round++) {
      starts.all.push(await time(all, root))
      starts.none.push(await time(none, bare))
    }
    const compare = (label: string, of: keyof Start): Result => {
      const [value, floor] = [
        median(starts.all.map((start) => start[of])),
        median(starts.none.map((start) => start[of])),
      ]
      const each = (value - floor) / count
      return {
        label: `second start, ${count} channels that are off against a build without them: ${label}`,
        value: `${value.toFixed(1)} ms`,
        floor: `${floor.toFixed(1)} ms`,
        ratio: `${each.toFixed(2)} ms each`,
        goal: `<= ${LIMIT_MS} ms each`,
        reached: each <= LIMIT_MS,
      }
    }
    return [compare('until it answers', 'ms'), compare('processor time', 'cpu')]
  } finally {
    await rm(bare, { recursive: true, force: true })
  }
}

interface Start {
  readonly ms: number
  readonly cpu: number
}

/** Builds a copy of the sources that has no folder of a channel. */
async function buildWithoutChannels(folder: string): Promise<void> {
  const channels = join(root, 'adapters/channels')
  for (const name of SOURCES) {
    await mkdir(dirname(join(folder, name)), { recursive: true })
    await cp(join(root, name), join(folder, name), {
      recursive: true,
      // Of the channels only their contract, which is files.
      filter: (source) => dirname(source) !== channels || basename(source).includes('.'),
    })
  }
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  await run(process.execPath, ['core/build/build.ts'], { cwd: folder })
}
