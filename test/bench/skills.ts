import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Result } from './figures.ts'
import { Home, freePort, load, median, root, startServer, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const SKILLS = 300
/** One in so many has a tool. */
const WITH_TOOL = 10
const START_ROUNDS = 9
const TURN_ROUNDS = 9
const LIMIT_TURN_MS = 3
const LIMIT_START_MS = 20

/** What 300 installed skills add to a start and to a turn of an agent that may use them all. */
export async function skills(): Promise<readonly Result[]> {
  await using provider = await startServer([join(root, 'test/bench/floor/instant-provider.ts')], {
    port: await freePort(),
    path: '/',
    env: { TOKENS: '4' },
    core: 1,
  })
  const config = `default_provider = "openai"\ndefault_model = "bench"\n[providers.openai]\nbase_url = "http://127.0.0.1:${provider.port}/v1"\napi_key = "bench-key"\n`
  using few = new Home(config)
  using many = new Home(config)
  const agents = { few: await prepare(few, 0), many: await prepare(many, SKILLS) }
  return [...(await measureStarts(few, many)), ...(await measureTurns(few, many, agents))]
}

/** Installs skills, and spawns an agent. */
async function prepare(home: Home, count: number): Promise<string> {
  await using svc = await startSvc(home)
  const folder = mkdtempSync(join(tmpdir(), 'svc-bench-skills-'))
  try {
    for (let index = 0; index < count; index++)
      await request(svc, 'POST', '/api/skills/install', { source: write(folder, index), accept_permissions: true })
  } finally {
    rmSync(folder, { recursive: true })
  }
  const manifest_toml = 'name = "skilled"\n[capabilities]\ntools = ["skill_*"]\n'
  return (await request<{ agent_id: string }>(svc, 'POST', '/api/agents', { manifest_toml })).agent_id
}

function write(parent: string, index: number): string {
  const name = `skill-${index}`
  const folder = join(parent, name)
  const description = `Knows subject ${index} of a trade. Use when somebody asks for a thing of kind ${index}.`
  mkdirSync(folder)
  const text = `---\nname: ${name}\ndescription: ${description}\nmetadata:\n  version: "1.0.0"\n---\n\n`
  writeFileSync(
    join(folder, 'SKILL.md'),
    `${text}# Subject ${index}\n\n${'Do this first, then look at that. '.repeat(200)}\n`,
  )
  if (index % WITH_TOOL > 0) return folder
  const tool = `[[tools.provided]]\nname = "look"\ndescription = "Looks at subject ${index}."\n`
  const schema = 'input_schema = { required = ["name"], properties = { name = { type = "string" } } }\n'
  const runtime = '[runtime]\ntype = "node"\nentry = "run.mjs"\n'
  writeFileSync(join(folder, 'skill.toml'), `[skill]\nname = "${name}"\n${runtime}${tool}${schema}`)
  writeFileSync(join(folder, 'run.mjs'), "console.log('{}')\n")
  return folder
}

async function measureStarts(few: Home, many: Home): Promise<readonly Result[]> {
  const times = { few: [] as Start[], many: [] as Start[] }
  for (let round = 0; round < START_ROUNDS; round++) {
    times.few.push(await timeStart(few))
    times.many.push(await timeStart(many))
  }
  return [
    compare(
      `second start, ${SKILLS} installed skills against none: until it answers`,
      times,
      'answersMs',
      LIMIT_START_MS,
    ),
    compare('the same: processor time until it answers', times, 'answersCpuMs', LIMIT_START_MS),
    compare('the same: processor time until all skills are read, which no request waits for', times, 'readCpuMs'),
  ]
}
interface Start {
  readonly answersMs: number
  readonly answersCpuMs: number
  readonly readCpuMs: number
}
async function timeStart(home: Home): Promise<Start> {
  await using svc = await startSvc(home)
  const answersCpuMs = svc.runUs() / 1000
  await request(svc, 'GET', '/api/skills')
  return { answersMs: svc.startedMs, answersCpuMs, readCpuMs: svc.runUs() / 1000 }
}
async function measureTurns(
  few: Home,
  many: Home,
  agents: Readonly<Record<'few' | 'many', string>>,
): Promise<readonly Result[]> {
  await using without = await startSvc(few)
  await using skilled = await startSvc(many)
  const servers = { few: without, many: skilled }
  const times = { few: [] as Turn[], many: [] as Turn[] }
  for (let round = 0; round < TURN_ROUNDS; round++)
    for (const which of ['few', 'many'] as const) times[which].push(await timeTurns(servers[which], agents[which]))
  return [
    compare(`turn of an agent with ${SKILLS} installed skills against none, p50`, times, 'p50Ms', LIMIT_TURN_MS),
    compare('the same: processor time of a turn, which a busy machine disturbs less', times, 'cpuMs', LIMIT_TURN_MS),
  ]
}
interface Turn {
  readonly p50Ms: number
  readonly cpuMs: number
}
async function timeTurns(server: Server, agent: string): Promise<Turn> {
  // Each round begins in an empty session, so that both have as much history.
  await request(server, 'POST', `/api/agents/${agent}/session/reset`)
  const before = server.runUs()
  const { p50Ms, failures, all } = await load<{ p50Ms: number; failures: number; all: number }>('load.ts', {
    port: server.port,
    connections: 1,
    ms: 800,
    warmMs: 400,
    method: 'POST',
    path: `/api/agents/${agent}/message`,
    body: '{"message":"hello"}',
  })
  if (failures > 0) throw new Error(`${failures} turns failed`)
  return { p50Ms, cpuMs: (server.runUs() - before) / 1000 / all }
}

function compare<K extends string>(
  label: string,
  times: Readonly<Record<'few' | 'many', readonly Readonly<Record<K, number>>[]>>,
  of: K,
  limit?: number,
): Result {
  const [value, floor] = [median(times.many.map((each) => each[of])), median(times.few.map((each) => each[of]))]
  return {
    label,
    value: `${value.toFixed(2)} ms`,
    floor: `${floor.toFixed(2)} ms`,
    ratio: `+ ${(value - floor).toFixed(2)} ms`,
    goal: limit === undefined ? '' : `<= + ${limit} ms`,
    ...(limit !== undefined && { reached: value - floor <= limit }),
  }
}

async function request<T>({ port }: Server, method: string, path: string, body?: object): Promise<T> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    ...(body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path} answered ${response.status}: ${text.slice(0, 300)}`)
  return JSON.parse(text) as T
}
