import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startPlugin } from 'svc/testing'
import type { PluginTest } from 'svc/testing'
import type { Statement } from 'svc/sdk'
import type { Approval } from '../../../plugins/approvals/contract.ts'
import { Escalator } from '../../../plugins/approvals/escalation/escalator.ts'
import type { RequestRow } from '../../../plugins/approvals/schema.ts'
import { eventually } from '../../support/eventually.ts'
import type { Json } from '../../support/json.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { ChatPlatform } from '../channels/chat-platform.ts'
import { auditDetails, turnPlugins } from '../plugin-test.ts'

// What nobody answers is asked elsewhere, once; what two people have to approve needs two.

const BOSS = { id: 'boss-room', kind: 'direct' } as const
let test: PluginTest
let platform: ChatPlatform
let helper: string
/** Asked for by the first test, so that the time until its escalation passes meanwhile. */
let early: string
beforeAll(async () => {
  platform = new ChatPlatform()
  platform.install({ buttons: true })
  test = await startPlugin({
    plugin: new URL('../channels/test-channel', import.meta.url),
    builtIns: [
      ...turnPlugins,
      'settings',
      'queue',
      'result-delivery',
      'approvals',
      'kv',
      'channels',
      'activity',
      'system',
    ],
    database: 'file',
    config: {
      channels: {
        test_chat: {
          agent_name: 'clerk',
          allowed_users: ['ada', 'bob'],
          operators: ['olga', 'boris'],
          rate_limit_per_user: 1000,
        },
      },
      plugins: {
        approvals: {
          policy: 'always',
          pending_per_agent: 50,
          escalation: [{ after_secs: 1, channel: 'test_chat', to: BOSS.id, tools: ['kv_*'] }],
          two_people: [{ tools: ['kv_delete'] }],
        },
        channels: { send_retry_min_ms: 1 },
      },
    },
  })
  helper = await test.spawn('helper', '[capabilities]\ntools = ["*"]')
  await test.spawn('clerk', '[capabilities]\ntools = ["*"]')
  await test.request('POST', '/api/channels/reload')
  await platform.connected()
})
afterAll(() => test[Symbol.asyncDispose]())

const from = (id: string) => ({ sender: { id, name: id } })
const ask = async (tool: string, payload: object = {}): Promise<string> =>
  (await test.request<Json>('POST', '/api/approvals', { agent_id: helper, action: tool, payload })).body.id
const read = async (id: string): Promise<Json> => (await test.request<Json>('GET', `/api/approvals/${id}`)).body
const inBossRoom = (): readonly string[] =>
  platform.shown.filter(({ chat }) => chat === BOSS.id).map(({ text }) => text)
const said = (id: string): readonly string[] => inBossRoom().filter((text) => text.includes(id))
/** What the bot answers to a message in a chat. */
async function say(chat: { readonly id: string; readonly kind: 'direct' | 'group' }, text: string, who: string) {
  const before = platform.shown.filter((each) => each.chat === chat.id).length
  await platform.write(text, { chat, ...from(who), mentionsBot: true })
  await eventually(() => expect(platform.shown.filter((each) => each.chat === chat.id).length).toBeGreaterThan(before))
  return platform.shown.filter((each) => each.chat === chat.id)[before]?.text ?? ''
}

describe('a request that nobody answers', () => {
  it('is asked in the chat that the file names, once, also across a restart, and is answered there by an operator', async () => {
    early = await ask('kv_delete', { key: 'a' })
    const [open, other] = [await ask('kv_set', { key: 'a' }), await ask('file_write')]
    await eventually(() => expect(said(open)).toHaveLength(1))
    expect(said(open)[0]).toMatch(/helper.*wants to.*nobody has answered[\s\S]*kv_set[\s\S]*\/approve /)
    // The early one may be escalated at the same moment.
    expect(await auditDetails(test, 'capability_check')).toContainEqual(
      expect.stringContaining(`approval ${open} escalated to test_chat chat`),
    )
    await test.restart()
    await test.request('POST', '/api/channels/reload')
    const later = await ask('kv_set', { key: 'later' })
    await eventually(() => expect(said(later)).toHaveLength(1))
    expect([said(open).length, said(other).length]).toEqual([1, 0])

    const escalated = await test.metrics('svc_approvals_escalated')
    expect([...escalated]).toEqual([[expect.stringContaining('test_chat'), expect.any(Number)]])

    // Neither a user there, nor an operator in another chat, nor the answer to what was not asked there.
    expect(await say(BOSS, `/approve ${open}`, 'ada')).toContain('Only an operator')
    expect(await say({ id: 'elsewhere', kind: 'direct' }, `/approve ${open}`, 'olga')).toContain('Nothing of this chat')
    expect(await say(BOSS, `/approve ${other}`, 'olga')).toContain('Nothing of this chat')
    expect(await read(open)).toMatchObject({ status: 'pending', escalated_to: [{ channel: 'test_chat', to: BOSS.id }] })
    expect((await read(other)).escalated_to).toEqual([])
    expect(await say(BOSS, `/approve ${open}`, 'olga')).toContain('Approved, once')
    expect(await read(open)).toMatchObject({ status: 'approved', decided_by: expect.stringContaining('olga') })
    // A replay answers nothing.
    expect(await say(BOSS, `/reject ${open}`, 'olga')).toContain('Nothing of this chat')
    expect((await read(open)).status).toBe('approved')
  })
})

describe('a chat', () => {
  const approval = {
    id: 'one',
    agentId: 'a',
    agentName: 'helper',
    tool: 'kv_set',
    risk: 'medium',
    requestedAt: new Date(1_000_000).toISOString(),
    expiresAt: new Date(10_000_000).toISOString(),
    needed: 1,
    lasting: false,
  } as Approval
  function start() {
    const clock = new ManualClock()
    const asked: unknown[] = []
    const failures: unknown[] = []
    let isLoaded = true
    const escalator = new Escalator({
      rules: [{ after_secs: 60, channel: 'test_chat', to: BOSS.id }],
      clock,
      store: {
        commit: async () => void asked.push(clock.now()),
        escalate: () => ({}) as Statement,
        find: async () => ({ state: 'pending', expires_at: approval.expiresAt }) as RequestRow,
        isEscalated: async () => asked.length > 0,
      },
      audit: { entry: () => ({}) as Statement },
      delivery: () => (isLoaded ? { deliver: () => [] } : undefined),
      escalated: () => {},
      failed: (error) => failures.push(error),
    })
    escalator.start(approval)
    return { clock, asked, failures, escalator, load: (loaded: boolean) => void (isLoaded = loaded) }
  }

  it('is asked when the time is over and not before, and again when it could not be asked', async () => {
    const { clock, asked, failures, load } = start()
    load(false)
    clock.advance(59_999)
    await setImmediate()
    expect([failures, clock.waiting]).toEqual([[], 1])
    clock.advance(1)
    await eventually(() => expect([failures.length, clock.waiting]).toEqual([1, 1]))
    load(true)
    clock.advance(60_000)
    await eventually(() => expect(asked).toEqual([1_120_000]))
  })

  it('is not asked about what was answered before', async () => {
    const { clock, asked, escalator } = start()
    clock.advance(59_999)
    escalator.stop(approval.id)
    expect(clock.waiting).toBe(0)
    clock.advance(60_000)
    await setImmediate()
    expect(asked).toEqual([])
  })
})

describe('what two people have to approve', () => {
  it('waits for another person after the first, and one of them alone can reject', async () => {
    const [id, rejected] = [early, await ask('kv_delete', { key: 'b' })]
    expect(await read(id)).toMatchObject({ approvals_needed: 2, first_approved_by: null, scopes: ['once'] })
    const approve = (of: string, body?: object) => test.request<Json>('POST', `/api/approvals/${of}/approve`, body)
    expect((await approve(id, { scope: 'session' })).status).toBe(403)
    expect(await approve(id)).toMatchObject({ status: 200, body: { status: 'pending', decided_at: null } })
    expect((await approve(id)).body.error).toMatchObject({
      code: 'forbidden',
      message: expect.stringContaining('another person'),
    })
    expect(await read(id)).toMatchObject({ status: 'pending', first_approved_by: 'operator' })

    await eventually(() => expect(said(id)).toHaveLength(1))
    expect(said(id)[0]).toContain('Two different people')
    expect(await say(BOSS, `/approve ${id}`, 'boris')).toContain('Approved, once')
    expect(await read(id)).toMatchObject({ status: 'approved', decided_by: expect.stringContaining('boris') })

    await approve(rejected)
    expect((await test.request('POST', `/api/approvals/${rejected}/reject`)).status).toBe(200)
    expect((await approve(rejected)).status).toBe(409)
  })

  it('is approved at most once in the chat that asks for it, and never twice by one person under two names', async () => {
    const chat = { id: 'team', kind: 'group' } as const
    test.model.answer({ calls: [{ tool: 'kv_delete', args: { key: 'team' } }] }, 'Deleted.')
    const asked = await say(chat, 'delete it', 'ada')
    const id = /\/approve ([0-9a-f-]{36})/.exec(asked)?.[1] ?? ''
    expect(await say(chat, `/approve ${id}`, 'olga')).toContain('a second person has to approve it too')
    expect(await say(chat, `/approve ${id}`, 'boris')).toContain('outside of the chat')
    await eventually(() => expect(said(id)).toHaveLength(1))
    await platform.write(`/approve ${id}`, { chat: BOSS, sender: { id: 'olga', name: 'Somebody else' } })
    await eventually(() => expect(inBossRoom().at(-1)).toContain('another person has to approve it'))
    expect((await read(id)).status).toBe('pending')
    expect(await say(BOSS, `/approve ${id}`, 'boris')).toContain('Approved, once')
    await eventually(() => expect(platform.shown.at(-1)?.text).toBe('Deleted.'))
  })

  it('of many answers at the same moment one of each person counts', async () => {
    const id = await ask('kv_delete', { key: 'race' })
    const verbs = ['approve', 'approve', 'approve', 'approve']
    const statuses = await Promise.all(
      verbs.map(async (verb) => (await test.request('POST', `/api/approvals/${id}/${verb}`)).status),
    )
    expect(statuses.filter((status) => status === 200)).toHaveLength(1)
    expect(await read(id)).toMatchObject({ status: 'pending', first_approved_by: 'operator' })
  })
})

describe('rules of escalation that make no sense', () => {
  it.each([
    ['escalation', [{ after_secs: 0, channel: 'test_chat', to: 'x' }], 'after_secs'],
    ['escalation', [{ after_secs: 5, to: 'x' }], 'channel'],
    ['escalation', [{ after_secs: 5, channel: 'test_chat', to: ' ' }], 'to'],
    ['escalation', [{ after_secs: 5, channel: 'test_chat', to: 'x', chanel: 'y' }], 'chanel'],
    ['two_people', [{ risks: ['enormous'] }], 'risks'],
  ])('%s = %j is refused for %s', async (key, rules, field) => {
    const { ApprovalsConfig } = await import('../../../plugins/approvals/config.ts')
    const { getDotPath, safeParse } = await import('valibot')
    const { issues = [] } = safeParse(ApprovalsConfig, { [key]: rules })
    expect(issues.map((issue) => getDotPath(issue)).join()).toContain(field)
  })
})
