import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../support/chat-stage.ts'
import type { ChatStage } from '../support/chat-stage.ts'
import { pluginText, temporaryFolder, writePlugin } from '../support/plugin-folder.ts'

let stage: ChatStage
beforeAll(async () => {
  stage = await openChat()
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
})

const tool = (name: string): string =>
  pluginText('dice', {
    setup: `ctx.tools.add(defineTool({ name: '${name}', description: 'Throws a die.', risk: 'read', input: v.object({ sides: v.pipe(v.number(), v.integer(), v.minValue(2)) }), run: async ({ sides }) => 'a throw of ' + sides }))
    return {}`,
  })
const names = async (): Promise<string[]> => (await stage.host.json('GET', '/api/tools')).body.tools
const offered = (): string[] => {
  const body = stage.fake.requests.at(-1)?.body as
    | { readonly tools?: readonly { readonly function: { readonly name: string } }[] }
    | undefined
  return body?.tools?.map(({ function: { name } }) => name) ?? []
}

describe('a tool of a plugin that is loaded while the daemon runs', () => {
  it('is listed with its input schema, offered in the next turn, called, and gone with its plugin', async () => {
    await using folder = await temporaryFolder()
    const agent = await stage.spawn('gambler', ['dice_*'])
    const ask = async () =>
      (await stage.host.json('POST', `/api/agents/${agent}/message`, { message: 'throw' })).body.response as string
    expect(await names()).not.toContain('dice_roll')
    await ask()
    expect(offered()).toEqual([])

    await stage.host.app.daemon.load(await writePlugin(`${folder.path}/dice`, tool('dice_roll')))
    expect(await names()).toContain('dice_roll')
    expect((await stage.host.json('GET', '/api/tools/dice_roll')).body).toMatchObject({
      name: 'dice_roll',
      description: 'Throws a die.',
      input_schema: { type: 'object', properties: { sides: { type: 'integer', minimum: 2 } }, required: ['sides'] },
    })
    stage.fake.script({ calls: [{ name: 'dice_roll', args: { sides: 6 } }] }, ({ body }) => ({
      text: `got ${String(body.messages?.at(-1)?.content)}`,
    }))
    expect(await ask()).toContain('a throw of 6')
    expect(offered()).toEqual(['dice_roll'])

    await writePlugin(`${folder.path}/dice`, tool('dice_throw'))
    await stage.host.app.daemon.reload('dice')
    expect((await stage.host.json('GET', '/api/tools/dice_roll')).status).toBe(404)
    await ask()
    expect(offered()).toEqual(['dice_throw'])

    await stage.host.app.daemon.unload('dice')
    expect(await names()).not.toContain('dice_throw')
    await ask()
    expect(offered()).toEqual([])
  })
})

describe('system_info', () => {
  it('tells an agent what it runs on, and nothing that names the machine or its folders', async () => {
    const agent = await stage.spawn('curious', ['system_info'])
    stage.fake.script({ calls: [{ name: 'system_info' }] }, ({ body }) => ({
      text: String(body.messages?.at(-1)?.content),
    }))
    const { body } = await stage.host.json<{ response: string }>('POST', `/api/agents/${agent}/message`, {
      message: 'where are you?',
    })
    const [agents, version] = [
      (await stage.host.json<unknown[]>('GET', '/api/agents')).body,
      (await stage.host.json('GET', '/api/version')).body,
    ]
    // Exactly this: no name of the machine, its user or its folders.
    expect(JSON.parse(body.response)).toEqual({
      service: 'svc',
      started_at: expect.any(String),
      version: version.version,
      platform: version.platform,
      arch: version.arch,
      agent_count: agents.length,
      default_model: { provider: 'openai', model: 'fake-1' },
      processors: expect.any(Number),
      memory_bytes: expect.any(Number),
      free_memory_bytes: expect.any(Number),
      uptime_seconds: expect.any(Number),
    })
  })
})
