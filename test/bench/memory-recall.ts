import { setTimeout as delay } from 'node:timers/promises'
import { startFakeEmbedder } from '../support/fake-embedder.ts'
import { HELD_OUT, KINDS, measureGold, PEOPLE, readGold, saysByWords, scoreOf } from '../support/memory-gold.ts'
import type { Answer, Found, GoldPerson, Kind, Says } from '../support/memory-gold.ts'
import type { Result } from './figures.ts'
import { Home, startSvc } from './processes.ts'
import type { Server } from './processes.ts'

const MAX_WAIT_MS = 300_000
const POLL_MS = 100
const LANES = new Set(['memory-extraction', 'memory-vectors'])
const GOALS: Partial<Record<Kind, number>> = { single: 0.8, update: 0.95, unknown: 0.95 }
const LABELS: Record<Kind, string> = {
  single: 'one fact',
  hop: 'several facts',
  time: 'time',
  update: 'what has changed',
  unknown: 'never said: nothing found',
}

/**
 * How much of the gold set a daemon finds, among five memories for each question: of facts that are stored, and of
 * messages that an agent is told and remembers by itself, with the local embedding and with the vectors of a model.
 */
export async function memoryRecall(): Promise<readonly Result[]> {
  await using fake = await startFakeEmbedder()
  const openai = `[providers.openai]\nbase_url = "${fake.origin}/v1"\napi_key = "k"\n`
  const model = `${openai}[plugins.providers]\nembedding = { provider = "openai", model = "default" }\n`
  return [...(await measure('local', '')), ...(await measure('model', model))]
}

async function measure(embedding: string, config: string): Promise<readonly Result[]> {
  using home = new Home(config)
  await using svc = await startSvc(home)
  return [
    ...(await measureOf(svc, embedding, PEOPLE.map(readGold))),
    ...(await measureOf(svc, `held out, ${embedding}`, HELD_OUT.map(readGold))),
  ]
}

async function measureOf(svc: Server, what: string, people: readonly GoldPerson[]): Promise<readonly Result[]> {
  const answers = { stored: [] as Answer[], told: [] as Answer[] }
  const heard: Heard = { said: 0, facts: 0, useful: 0, memories: 0 }
  for (const person of people) {
    const stored = await spawn(svc, `${person.name}-stored`)
    const told = await spawn(svc, `${person.name}-told`)
    const says = { stored: await store(svc, stored, person), told: saysByWords(person) }
    for (const message of person.sessions.flatMap(({ messages }) => messages))
      await request(svc, 'POST', `/api/agents/${told}/message`, { message })
    await settled(svc)
    await count(svc, told, person, heard)
    for (const [way, agent] of [
      ['stored', stored],
      ['told', told],
    ] as const) {
      const search = async (text: string): Promise<readonly Found[]> => {
        const path = `/api/memory/agents/${agent}/search?limit=5&q=${encodeURIComponent(text)}`
        return (await request<{ memories: readonly Found[] }>(svc, 'GET', path)).memories
      }
      answers[way].push(...(await measureGold(search, person, says[way])))
    }
  }
  return [
    ...rows(`${what}, stored`, answers.stored),
    line(`${what}: facts of messages that are remembered`, heard.said / heard.facts),
    line(`${what}: memories that say one of the facts`, heard.useful / heard.memories),
    ...rows(`${what}, told`, answers.told),
  ]
}

function rows(what: string, answers: readonly Answer[]): readonly Result[] {
  return KINDS.flatMap((kind) => {
    const { questions, recall, precision, newest } = scoreOf(answers.filter(({ question }) => question.kind === kind))
    return [
      line(`${what}: ${LABELS[kind]} (${questions})`, kind === 'update' ? newest : recall, GOALS[kind]),
      ...(kind === 'unknown' ? [] : [line(`${what}: ${LABELS[kind]}, precision`, precision)]),
    ]
  })
}
function line(label: string, value: number, goal?: number): Result {
  const reached = goal === undefined ? {} : { reached: value >= goal }
  return {
    label,
    value: value.toFixed(2),
    floor: '',
    ratio: '',
    goal: goal === undefined ? '' : `≥ ${goal}`,
    ...reached,
  }
}

async function spawn(svc: Server, name: string): Promise<string> {
  const manifest_toml =
    `name = "${name}"\n[model]\nprovider = "builtin"\nmodel = "offline"\n` +
    '[proactive_memory]\nauto_memorize = true\nextraction_model = "builtin/offline"\n'
  return (await request<{ agent_id: string }>(svc, 'POST', '/api/agents', { manifest_toml })).agent_id
}
async function store(svc: Server, agent: string, { facts }: GoldPerson): Promise<Says> {
  const ids = new Map<string, string>()
  for (const { id, replaces, text: content } of facts) {
    const supersedes = replaces === undefined ? undefined : ids.get(replaces)
    const body = { content, agent_id: agent, level: 'user', supersedes }
    const { memories } = await request<{ memories: readonly Found[] }>(svc, 'POST', '/api/memory', body)
    ids.set(id, memories[0]?.id ?? '')
  }
  return ({ id }, factId) => ids.get(factId) === id
}
/** Waits until every message is read and every memory has its vector. */
async function settled(svc: Server): Promise<void> {
  for (const until = performance.now() + MAX_WAIT_MS; performance.now() < until; await delay(POLL_MS)) {
    const { lanes } = await request<{ lanes: readonly Lane[] }>(svc, 'GET', '/api/queue/status')
    const isIdle = lanes.every(({ lane, depth, running }) => !LANES.has(lane) || depth + running === 0)
    const { without_vector: left } = await request<{ without_vector: number }>(svc, 'GET', '/api/memory/stats')
    if (isIdle && left === 0) return
  }
  throw new Error('the messages were not read in time')
}
interface Lane {
  readonly lane: string
  readonly depth: number
  readonly running: number
}
interface Heard {
  said: number
  facts: number
  useful: number
  memories: number
}
async function count(svc: Server, agent: string, person: GoldPerson, heard: Heard): Promise<void> {
  const { memories } = await request<{ memories: readonly Found[] }>(
    svc,
    'GET',
    `/api/memory/agents/${agent}?limit=100`,
  )
  const says = saysByWords(person)
  heard.facts += person.facts.length
  heard.memories += memories.length
  heard.said += person.facts.filter(({ id }) => memories.some((memory) => says(memory, id))).length
  heard.useful += memories.filter((memory) => person.facts.some(({ id }) => says(memory, id))).length
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
