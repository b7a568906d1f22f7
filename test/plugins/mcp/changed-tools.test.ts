import { describe, expect, it } from 'vitest'
import type { Approval, ApprovalInput, Approvals } from '../../../plugins/approvals/contract.ts'
import type { McpTool } from '../../../plugins/mcp/contract.ts'
import { pinMigrations } from '../../../plugins/mcp/features/migrations.ts'
import { ToolPins } from '../../../plugins/mcp/features/pins.ts'
import { PinStore } from '../../../plugins/mcp/features/store.ts'
import { screenTool } from '../../../plugins/mcp/features/screen-tool.ts'
import { engines, open } from '../../core/storage/engines.ts'

const tool = (name: string, description: string): McpTool => ({ name, description, inputSchema: { type: 'object' } })

describe.each(engines)('tools that change on %s', (engine) => {
  async function start() {
    const { database } = await open(engine)
    await database.migrate('mcp', pinMigrations)
    const asked = new Map<string, ApprovalInput & { state: string }>()
    const relisted: string[] = []
    const approvals = {
      find: async (id: string) => asked.get(id),
      request: async (input: ApprovalInput) => {
        const id = input.id ?? ''
        if (!asked.has(id)) asked.set(id, { ...input, state: 'pending' })
      },
    } as unknown as Approvals
    const pins = new ToolPins({
      store: new PinStore(database.sql),
      approvals: () => approvals,
      maxPins: 4,
      relist: async (server) => void relisted.push(server),
    })
    const answer = async (state: Approval['state'], at = -1) => {
      const request = [...asked.values()].at(at)
      if (!request) throw new Error('nothing was asked')
      request.state = state
      await pins.resolved({ ...request, state } as unknown as Approval)
    }
    return { pins, asked, relisted, answer }
  }

  it('are approved as they are first listed, and wait for a person when they say something else', async () => {
    const { pins, asked, relisted, answer } = await start()
    expect(await pins.check('files', [tool('read', 'Reads'), tool('write', 'Writes')])).toEqual(new Set())
    const changed = [tool('read', 'Reads and sends it'), tool('write', 'Writes'), tool('new', 'New')]
    expect(await pins.check('files', changed)).toEqual(new Set(['read']))
    expect(await pins.check('files', changed)).toEqual(new Set(['read']))
    expect([...asked.values()]).toEqual([
      expect.objectContaining({
        tool: 'mcp:files',
        risk: 'high',
        payload: {
          server: 'files',
          changes: [
            {
              tool: 'read',
              before: { description: 'Reads', inputSchema: { type: 'object' } },
              after: expect.objectContaining({ description: 'Reads and sends it' }),
            },
          ],
        },
      }),
    ])
    await answer('approved')
    expect(relisted).toEqual(['files'])
    expect(await pins.check('files', changed)).toEqual(new Set())
    // What it said before is a change now.
    expect(await pins.check('files', [tool('read', 'Reads')])).toEqual(new Set(['read']))
  })

  it('stay disabled when they are rejected, and are asked again when nobody answered', async () => {
    const { pins, asked, answer } = await start()
    await pins.check('files', [tool('read', 'Reads')])
    const changed = [tool('read', 'Sends')]
    await pins.check('files', changed)
    await answer('rejected')
    expect(await pins.check('files', changed)).toEqual(new Set(['read']))
    expect(asked.size).toBe(1)
    const other = [tool('read', 'Deletes')]
    await pins.check('files', other)
    await answer('expired')
    expect(await pins.check('files', other)).toEqual(new Set(['read']))
    expect(asked.size).toBe(3)
    await pins.forget('files')
    expect(await pins.check('files', other)).toEqual(new Set())
  })

  it('that change all the time ask nobody more often than somebody answers', async () => {
    const { pins, asked, answer } = await start()
    await pins.check('files', [tool('read', 'Reads')])
    for (let at = 0; at < 5; at++)
      expect(await pins.check('files', [tool('read', `Reads ${at}`)])).toEqual(new Set(['read']))
    expect(asked.size).toBe(1)
    await answer('approved')
    expect(await pins.check('files', [tool('read', 'Reads 9')])).toEqual(new Set(['read']))
    expect(asked.size).toBe(2)
  })

  it('with ever new names are not used any more at max_remembered_tools, and those before are', async () => {
    const { pins } = await start()
    for (const name of ['a', 'b', 'c']) expect(await pins.check('files', [tool(name, 'x')])).toEqual(new Set())
    expect(
      await pins.check(
        'files',
        ['a', 'd', 'e', 'f'].map((name) => tool(name, 'x')),
      ),
    ).toEqual(new Set(['e', 'f']))
    expect(await pins.check('files', [tool('e', 'x'), tool('a', 'x')])).toEqual(new Set(['e']))
    expect(await pins.check('other', [tool('e', 'x')])).toEqual(new Set())
  })

  it('an approval of something else enables nothing', async () => {
    const { pins, relisted, answer, asked } = await start()
    await pins.check('files', [tool('read', 'Reads')])
    await pins.check('files', [tool('read', 'Sends')])
    const [request] = asked.values()
    await pins.resolved({ ...request, state: 'approved', tool: 'mcp:other' } as unknown as Approval)
    await pins.resolved({ ...request, state: 'approved', tool: 'shell_exec' } as unknown as Approval)
    await pins.resolved({ ...request, state: 'approved', agentId: 'a1' } as unknown as Approval)
    await pins.resolved({ ...request, state: 'approved', lasting: false } as unknown as Approval)
    expect(relisted).toEqual([])
    expect(await pins.check('files', [tool('read', 'Sends')])).toEqual(new Set(['read']))
    await answer('approved')
    expect(relisted).toEqual(['files'])
  })
})

describe('the texts of a tool', () => {
  it.each([
    [{}, { usable: true }],
    [{ description: 'DROP everything' }, { usable: false, reason: expect.stringContaining('override') }],
    [{ inputSchema: { properties: { a: { description: 'DROP' } } } }, { usable: false, reason: expect.any(String) }],
    [{ outputSchema: { properties: { DROP: {} } } }, { usable: false, reason: expect.any(String) }],
    [{ title: 'please' }, { usable: true, reason: expect.stringContaining('please') }],
    [{ name: 'x'.repeat(300) }, { usable: false, reason: expect.stringContaining('longer') }],
  ])('are screened as text from outside: %o', async (more, expected) => {
    const screening = {
      fold: async (text: string) => text,
      screen: async (text: string) => {
        const level = text.includes('DROP') ? ('critical' as const) : ('warning' as const)
        return text.includes('DROP') || text.includes('please')
          ? { level, findings: [{ level, rule: 'override', excerpt: 'please' }] }
          : { level: 'none' as const, findings: [] }
      },
    }
    expect(await screenTool(screening, { ...tool('read', 'Reads'), ...more })).toEqual(expected)
  })
})
