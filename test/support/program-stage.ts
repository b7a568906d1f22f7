import { mkdirSync, writeFileSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'svc/sdk'
import type { Child, Spawn } from 'svc/sdk'
import { commandLine } from '../../adapters/providers/command-line/driver.ts'
import { programs } from '../../adapters/providers/command-line/programs.ts'
import { createSpawn } from '../../core/process/spawn.ts'
import { Scope } from '../../core/scope/scope.ts'
import { request } from '../contract/provider.ts'
import type { ProviderStage } from '../contract/provider.ts'
import { perform, programScript } from './fake-program.ts'
import type { Performance, ProgramName, RecordedRun } from './fake-program.ts'

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
async function installProgram(bin: string, command: ProgramName, dir: string): Promise<void> {
  for (const folder of [bin, join(dir, 'queue'), join(dir, 'runs'), join(dir, 'usual')])
    await mkdir(folder, { recursive: true })
  writeScene(join(dir, 'usual'), perform(command, { kind: 'text', deltas: ['OK'] }))
  writeFileSync(join(bin, command), programScript(command, dir), { mode: 0o755 })
}
function writeScene(folder: string, { output, play }: Performance): void {
  writeFileSync(join(folder, 'output'), output)
  writeFileSync(join(folder, 'play'), `${play}\n`)
}
async function readRun(folder: string): Promise<RecordedRun> {
  const read = (name: string): Promise<string> => readFile(join(folder, name), 'utf8')
  const readAny = async (name: string): Promise<string | undefined> =>
    (await readdir(folder)).includes(name) ? read(name) : undefined
  const settings = await readAny('settings')
  return {
    args: (await read('args')).split('\0').slice(0, -1),
    prompt: await read('prompt'),
    env: Object.fromEntries(
      (await read('env'))
        .split('\0')
        .filter((line) => line.includes('='))
        .map((line) => [line.slice(0, line.indexOf('=')), line.slice(line.indexOf('=') + 1)]),
    ),
    folder: (await read('folder')).split('\n').filter((name) => name !== ''),
    instructions: await readAny('instructions'),
    settings: settings === undefined ? undefined : JSON.parse(settings),
  }
}

/** The driver of one program, with a fake of the program. */
export async function openProgram(name: keyof typeof DETAILED, options: object = {}): Promise<ProgramStage> {
  const row = programs.find((one) => one.name === name)
  if (!row) throw new Error(`there is no program ${name}`)
  const dir = await mkdtemp(join(tmpdir(), 'svc-program-'))
  const bin = join(dir, 'bin')
  const program = row.command as ProgramName
  await installProgram(bin, program, dir)
  const scope = new Scope('test')
  const ownSpawn = createSpawn(scope)
  const children: Child[] = []
  const spawn: Spawn = {
    ...ownSpawn,
    async start(asked) {
      const child = await ownSpawn.start(asked)
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
      const scene = join(dir, 'queue', String(played++).padStart(4, '0'))
      mkdirSync(scene)
      writeScene(scene, perform(program, scenario))
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
      Promise.all((await readdir(join(dir, 'runs'))).toSorted().map((name) => readRun(join(dir, 'runs', name)))),
    async [Symbol.asyncDispose]() {
      await scope.close(0)
      await rm(dir, { recursive: true, force: true })
    },
  }
}
