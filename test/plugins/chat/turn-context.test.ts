import { startPlugin } from 'svc/testing'
import { expect, it } from 'vitest'
import type { Json } from '../../support/json.ts'
import { temporaryFolder, writePlugin } from '../../support/plugin-folder.ts'
import { turnPlugins, useTool } from '../plugin-test.ts'

const PLUGIN = `import { definePlugin, defineTool, transform, notify } from 'svc/sdk'
import * as v from 'valibot'
export default definePlugin({
  name: 'notes', version: '1.0.0', config: v.object({}),
  migrations: [{ id: '001', sql: 'CREATE TABLE notes_turn (id TEXT PRIMARY KEY, said TEXT NOT NULL)' }],
  setup({ hooks, db, tools }) {
    tools.add(defineTool({ name: 'who', description: 'Who speaks', risk: 'read', input: v.object({}), run: (_, call) => call.user ?? 'the owner' }))
    hooks.on(transform('chat:turn-context-built'), (context) => { const [question] = context.messages.filter(({ turnId }) => turnId === context.turn.id).map(({ blocks }) => blocks[0].text); return {
      ...context,
      additions: [...context.additions, {
        source: 'notes', text: 'NOTE for ' + question, labels: ['ExternalNetwork'],
        trace: { input: question, output: '1 note', durationMs: 2 },
      }],
    } })
    hooks.on(transform('chat:turn-ending'), (turn) => ({
      ...turn,
      statements: [...turn.statements, db.sql\`INSERT INTO notes_turn (id, said) VALUES (\${turn.turn.id}, \${turn.turn.entryPoint})\`],
    }))
    hooks.on(notify('chat:turn-ended'), async ({ result }) => {
      const row = await db.one\`SELECT said FROM notes_turn WHERE id = \${result.turnId}\`
      if (row?.said !== 'rest') throw new Error('the turn ended without its row')
    })
    return {}
  },
})
`

it('gets text of a plugin with its labels, in each call of the model, and leaves statements with its end', async () => {
  await using folder = await temporaryFolder()
  await writePlugin(folder.path, PLUGIN)
  await using test = await startPlugin({ plugin: folder.path, builtIns: [...turnPlugins, 'memory', 'activity'] })
  const agent = await test.spawn('a')
  const { requests } = test.model
  await test.say(agent, 'what do you know?', { calls: [{ tool: 'memory_list', args: {} }] }, 'done')
  expect(requests).toHaveLength(2)
  for (const { turns } of requests) {
    expect(turns.find(({ role }) => role === 'user')).toMatchObject({
      parts: [{ text: 'NOTE for what do you know?' }, { text: 'what do you know?' }],
    })
  }
  const { traces } = (await test.request<Json>('GET', `/api/agents/${agent}/traces`)).body
  expect(traces).toContainEqual(
    expect.objectContaining({ name: 'notes', input: 'what do you know?', output_summary: '1 note' }),
  )
  // The text is not stored, and what it carries stays with the answer.
  const stored = await test.request<Json>('GET', `/api/agents/${agent}/session`)
  expect(JSON.stringify(stored.body)).not.toContain('NOTE')
  expect(test.defects).toEqual([])
})

it('tells a tool who speaks', async () => {
  await using folder = await temporaryFolder()
  await writePlugin(folder.path, PLUGIN)
  await using test = await startPlugin({ plugin: folder.path, builtIns: turnPlugins })
  expect(await useTool(test, await test.spawn('a'), 'who')).toBe('the owner')
})

const SPEAKERS = `import { definePlugin, defineRoute, defineService, transform } from 'svc/sdk'
import * as v from 'valibot'
export default definePlugin({
  name: 'speakers', version: '1.0.0', config: v.object({}), requires: { chat: defineService()('chat') },
  setup({ hooks, routes, services }) {
    const heard = []
    hooks.on(transform('chat:turn-context-built'), (context) => {
      heard.push([context.agent.name, context.turn.user ?? 'the owner'])
      return context
    })
    routes.add(defineRoute({ method: 'POST', path: '/api/say-as', summary: 's', auth: 'bearer', effect: 'conversation', cost: 1,
      body: v.looseObject({}), returns: v.any(), errors: [],
      async handle({ body }) {
        await (await services.chat.accept({ ...body, entryPoint: 'channel' })).result()
        return heard.splice(0)
      } }))
    return {}
  },
})
`

it('says who speaks, also of an agent that is asked by another one meanwhile', async () => {
  await using folder = await temporaryFolder()
  await writePlugin(folder.path, SPEAKERS)
  await using test = await startPlugin({
    plugin: folder.path,
    builtIns: [...turnPlugins, 'builtin', 'delegation'],
    config: { default_provider: 'builtin', default_model: 'offline' },
  })
  const rights = '[capabilities]\ntools = ["*"]\nagent_message = ["*"]'
  const agentId = await test.spawn('asking', rights)
  await test.spawn('asked', rights)
  const text = `use agent_send ${JSON.stringify({ agent_id: 'asked', message: 'echo hello' })}`
  const sayAs = async (user?: string): Promise<unknown> =>
    (await test.request<Json>('POST', '/api/say-as', { agentId, text, user })).body
  expect(await sayAs('telegram:4711')).toEqual([
    ['asking', 'telegram:4711'],
    ['asked', 'telegram:4711'],
  ])
  expect(await sayAs()).toEqual([
    ['asking', 'the owner'],
    ['asked', 'the owner'],
  ])
})
