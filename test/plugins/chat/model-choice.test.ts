import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { levelOf, score } from '../../../plugins/chat/turn/model-choice.ts'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'

const ask = (text: string, more: { images?: number; earlier?: number } = {}) =>
  score({ text, images: 0, earlier: 0, ...more })
const usual = { simple_threshold: 100, complex_threshold: 500 }

describe('the score of a question', () => {
  it.each([
    ['', 0],
    ['hi', 1],
    ['What time is it?', 4],
    ['x'.repeat(400), 100],
    ['const a = 1', 3 + 30],
    ['1. do this\n2. do that', 6 + 50],
    ['- a\n- b\n* c', 3 + 75],
    ['```\nlet x = f(\n```', 5 + 90],
  ])('%j is %i', (text, points) => {
    expect(ask(text)).toBe(points)
  })
  it('has a bound for each thing that is not length', () => {
    expect(ask('x;\n'.repeat(1000)) - Math.ceil(3000 / 4)).toBe(300)
    expect(ask('- y\n'.repeat(1000)) - Math.ceil(4000 / 4)).toBe(200)
    expect(ask('', { earlier: 10_000 })).toBe(100)
  })
  it('counts images and what was asked before', () => {
    expect(ask('hi', { images: 2, earlier: 3 })).toBe(1 + 200 + 15)
  })
  it('never falls when something is added', () => {
    let text = ''
    let last = 0
    for (const line of ['hello', 'const a = 1', '1. one', '```', 'a;', 'more words here', '- x']) {
      text += `${line}\n`
      expect(ask(text)).toBeGreaterThanOrEqual(last)
      last = ask(text)
    }
  })
  // A score that grows with the square would need minutes here, and the time limit of a test ends it.
  it('scores texts of a megabyte', () => {
    for (const text of [
      'a'.repeat(1_000_000),
      ' '.repeat(1_000_000),
      'import '.repeat(150_000),
      '{\n'.repeat(500_000),
      '1'.repeat(1_000_000),
    ])
      expect(ask(text)).toBeGreaterThan(0)
  })
  it.each([
    [0, 'simple'],
    [99, 'simple'],
    [100, 'medium'],
    [499, 'medium'],
    [500, 'complex'],
    [9999, 'complex'],
  ] as const)('%i is %s with the usual thresholds', (points, level) => {
    expect(levelOf(points, usual)).toBe(level)
  })
  it('thresholds of nothing make everything complex', () => {
    expect(levelOf(0, { simple_threshold: 0, complex_threshold: 0 })).toBe('complex')
  })
})

describe('an agent with routing', () => {
  let stage: ChatStage
  const agents: string[] = []
  beforeAll(async () => {
    stage = await openChat({ memory: true })
  })
  afterAll(() => stage[Symbol.asyncDispose]())
  afterEach(async () => {
    for (const id of agents.splice(0)) await stage.host.json('DELETE', `/api/agents/${id}`)
  })
  const spawn = async (routing: string, more = ''): Promise<string> => {
    const id = await stage.spawn(
      `routed-${agents.length}-${Math.random()}`,
      [],
      `${more}\n[model]\nprovider = "openai"\nmodel = "fake-1"\n[routing]\n${routing}`,
    )
    agents.push(id)
    return id
  }
  const answeredBy = async (agent: string, text: string): Promise<string> => {
    stage.fake.always({ text: 'ok' })
    const { status, body } = await stage.host.json('POST', `/api/agents/${agent}/message`, { message: text })
    expect(status).toBe(200)
    expect(stage.fake.requests.at(-1)?.body.model).toBe(body.model)
    return `${body.provider}/${body.model}`
  }
  const long = 'Please explain at length. '.repeat(30)
  const hard = `Do all of this:\n${'- refactor\n'.repeat(10)}\`\`\`\n${'const a = f(1);\n'.repeat(12)}\`\`\``

  it('is answered by the model for what it is asked, and the turn says which', async () => {
    const agent = await spawn('simple_model = "small"\nmedium_model = "middle"\ncomplex_model = "openai/large"')
    expect(await answeredBy(agent, 'hi')).toBe('openai/small')
    expect(await answeredBy(agent, long)).toBe('openai/middle')
    expect(await answeredBy(agent, hard)).toBe('openai/large')
  })
  it('is answered by its own model where none is named for a level', async () => {
    const agent = await spawn('complex_model = "large"')
    expect(await answeredBy(agent, 'hi')).toBe('openai/fake-1')
    expect(await answeredBy(agent, hard)).toBe('openai/large')
  })
  it('takes its own thresholds', async () => {
    const agent = await spawn(
      'simple_model = "small"\ncomplex_model = "large"\nsimple_threshold = 0\ncomplex_threshold = 1',
    )
    expect(await answeredBy(agent, 'hi')).toBe('openai/large')
  })
  it('falls back to its own model when the one it is routed to fails', async () => {
    const agent = await spawn('simple_model = "groq/small"')
    // Groq has no key here.
    expect(await answeredBy(agent, 'hi')).toBe('openai/fake-1')
    const other = await spawn('simple_model = "small"')
    stage.fake.script({ status: 404, body: '{"error":{"message":"no such model"}}' })
    expect(await answeredBy(other, 'hi')).toBe('openai/fake-1')
  })
  it('in mode Stable is answered by what is pinned', async () => {
    const agent = await spawn('simple_model = "small"')
    expect((await stage.host.json('PUT', `/api/agents/${agent}/mode`, { mode: 'Stable' })).status).toBe(200)
    expect(await answeredBy(agent, 'hi')).toBe('openai/fake-1')
    await stage.host.json('PUT', `/api/agents/${agent}/mode`, { mode: 'Normal' })
    expect(await answeredBy(agent, 'hi')).toBe('openai/small')
  })
})
