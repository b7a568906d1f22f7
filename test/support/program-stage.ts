import { chmod, mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parse } from 'svc/sdk'
import type { Child, Spawn } from 'svc/sdk'
import { commandLine } from '../../adapters/providers/command-line/driver.ts'
import { programs } from '../../adapters/providers/command-line/programs.ts'
import { createSpawn } from '../../core/process/spawn.ts'
import { Scope } from '../../core/scope/scope.ts'
import { request } from '../contract/provider.ts'
import type { ProviderStage } from '../contract/provider.ts'
import type { RecordedRun } from './fake-program.ts'

const script = fileURLToPath(new URL('fake-program.ts', import.meta.url))
const DETAILED = {
  'claude-code': { input: 100, output: 50, cachedInput: 80, cacheWrite: 5 },
  'codex-cli': { input: 100, output: 50, cachedInput: 80, thinking: 20 },
  'gemini-cli': { input: 100, output: 50, cachedInput: 80 },
  'qwen-code': { input: 100, output: 50, cachedInput: 80 },
} as const

export interface ProgramStage extends ProviderStage {
  readonly bin: string
  readonly spawn: Spawn
  /** What the programs were given so far. */
  runs(): Promise<readonly RecordedRun[]>
}

/** Puts a program of this name into a folder: a script that speaks as the real one is documented to. */
export async function installProgram(bin: string, command: string, dir: string): Promise<void> {
  await mkdir(bin, { recursive: true })
  await mkdir(join(dir, 'queue'), { recursive: true })
  writeFileSync(join(bin, command), `#!/bin/sh\nexec '${process.execPath}' '${script}' '${command}' '${dir}' "$@"\n`)
  await chmod(join(bin, command), 0o755)
}

/** The driver of one program, with a fake of the program. */
export async function openProgram(name: keyof typeof DETAILED, options: object = {}): Promise<ProgramStage> {
  const row = programs.find((one) => one.name === name)
  if (!row) throw new Error(`there is no program ${name}`)
  const dir = await mkdtemp(join(tmpdir(), 'svc-program-'))
  const bin = join(dir, 'bin')
  await installProgram(bin, row.command, dir)
  const scope = new Scope('test')
  const door = createSpawn(scope)
  const children: Child[] = []
  const spawn: Spawn = {
    ...door,
    async start(asked) {
      const child = await door.start(asked)
      children.push(child)
      return child
    },
  }
  const driver = commandLine(row, spawn)
  let played = 0
  return {
    bin,
    spawn,
    client: driver.connect({
      name,
      config: parse(driver.config, { path: [bin], ...options }),
      baseUrl: '',
      fetch: () => Promise.reject(new Error('no network')),
      apiKey: async () => undefined,
    }),
    play(scenario) {
      writeFileSync(join(dir, 'queue', `${String(played++).padStart(4, '0')}.json`), JSON.stringify(scenario))
      return { ...request('go on'), model: 'fake-1' }
    },
    received: () => children.length,
    detailed: DETAILED[name],
    async lastClosed() {
      const child = children.at(-1)
      if (!child) throw new Error('nothing ran')
      return (await child.ended).reason === 'exit'
    },
    runs: async () =>
      Promise.all(
        (await readdir(join(dir, 'runs')))
          .toSorted()
          .map(async (file) => JSON.parse(await readFile(join(dir, 'runs', file), 'utf8'))),
      ),
    async [Symbol.asyncDispose]() {
      await scope.close(0)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
