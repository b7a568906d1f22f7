import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { engines, open, recorder } from '../../core/storage/engines.ts'
import type { Principal } from '../../../core/auth/principal.ts'
import type { Statement } from '../../../core/storage/database.ts'
import type { EngineName } from '../../core/storage/engines.ts'
import type { Agent } from '../../../plugins/agents/contract.ts'
import type { Audit } from '../../../plugins/audit/contract.ts'
import type { ToolCallAttempt } from '../../../plugins/chat/contract.ts'
import { ApprovalsConfig } from '../../../plugins/approvals/config.ts'
import type { Approval } from '../../../plugins/approvals/contract.ts'
import { RowProofs } from '../../../core/auth/row-proof.ts'
import { ApprovalGate } from '../../../plugins/approvals/gate.ts'
import { migrations } from '../../../plugins/approvals/migrations.ts'
import { ApprovalProofs } from '../../../plugins/approvals/proof.ts'
import { ApprovalService } from '../../../plugins/approvals/service.ts'
import { RevokedGrants } from '../../../plugins/approvals/revoked/store.ts'
import { ApprovalStore } from '../../../plugins/approvals/store.ts'
import type { ToolDescription } from '../../../core/tools/tool.ts'
import { assessCommand } from '../../../plugins/shell/harm.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const agent: Agent = { id: 'agent', name: 'assistant', manifest: { metadata: {} } } as unknown as Agent
const auditTable = [{ id: '001', sql: 'CREATE TABLE audit_line (details TEXT NOT NULL)' }]

/** What the tool `run` says of its calls. */
const run: ToolDescription = {
  name: 'run',
  description: '',
  input: {},
  risk: 'execute',
  needs: 'shell',
  assess: (args) => {
    const { command } = v.parse(v.object({ command: v.string() }), args)
    return assessCommand(command)
  },
}
/** A tool that is harmless, except for some of its calls. */
const send: ToolDescription = {
  name: 'send',
  description: '',
  input: {},
  risk: 'read',
  assess: (args) => ({ intent: 'send', harm: v.parse(v.object({ harm: v.picklist(['medium', 'high']) }), args).harm }),
}

const codes = new RowProofs({ derive: () => Promise.resolve(new Uint8Array(32)), vault: { write: async () => {} } })
/** Of the home; each test has its own grants. */
const revocations = new Map<string, { revoked_at: string }>()
const remembered = { find: async (id: string) => revocations.get(id) }
const proofs = () => Promise.resolve(new ApprovalProofs(codes, recorder().log, remembered))

async function start(engine: EngineName, config: v.InferInput<typeof ApprovalsConfig> = {}) {
  const { database } = await open(engine)
  await database.migrate('approvals', migrations)
  await database.migrate('audit', auditTable)
  const { sql: db } = database
  const clock = new ManualClock()
  const settings = v.parse(ApprovalsConfig, config)
  const told: Approval[] = []
  let granted = 0
  const revoked = new Set<Principal>()
  const audit: Audit = {
    entry: ({ details }) => db.sql`INSERT INTO audit_line (details) VALUES (${details})`,
    write: async () => {},
    entries: async () => [],
  }
  /** The plugin as another process opens it. */
  const boot = async () => {
    const unloaded = new AbortController()
    const store = new ApprovalStore(db, recorder().log, proofs)
    const service = new ApprovalService({
      store,
      audit,
      clock,
      requested: (approval) => {
        told.push(approval)
      },
      resolved: (approval) => {
        told.push(approval)
      },
      resumed: () => undefined,
      granted: () => granted++,
      revoked: async (id, at) => void revocations.set(id, { revoked_at: at }),
      tellRevoked: () => [],
      failed: (error) => {
        throw error
      },
      asks: () => false,
      isLasting: () => false,
      remember: (principal) => ('id' in principal ? principal.id : undefined),
      holds: (remembered) => ![...revoked].some((one) => 'id' in one && one.id === remembered),
      limits: {
        timeoutSecs: settings.timeout_secs,
        agentTimeoutSecs: new Map(Object.entries(settings.agent_timeout_secs)),
        pendingPerAgent: settings.pending_per_agent,
        payloadBytes: settings.payload_bytes,
        keepDays: settings.keep_days,
        sessionScope: settings.session_scope,
        twoPeople: settings.two_people,
        grantsPerSession: settings.grants_per_session,
      },
    })
    await service.open()
    const gate = new ApprovalGate({
      config: settings,
      service,
      store,
      clock,
      tools: { find: (name) => [run, send].find((tool) => tool.name === name) },
      leaving: unloaded.signal,
    })
    return {
      service,
      store,
      gate: (call: ToolCallAttempt) => {
        const checked = gate.check(call)
        // It may fail before the test asks how it went.
        checked.catch(() => undefined)
        return checked
      },
      unload: () => {
        service.close()
        unloaded.abort(new Error('unloaded'))
      },
    }
  }
  const lines = async (): Promise<readonly string[]> =>
    (await db.all<{ details: string }>`SELECT details FROM audit_line`).map(({ details }) => details)
  return { clock, db, told, boot, lines, revoked, granted: () => granted, ...(await boot()) }
}
const attempt = (more: Partial<ToolCallAttempt> = {}): ToolCallAttempt => ({
  agent,
  turnId: 'turn',
  sessionId: 'session',
  callId: 'call',
  tool: 'shell_exec',
  args: { command: 'ls' },
  risk: 'execute',
  signal: new AbortController().signal,
  ...more,
})
/** The request that is made while the call waits. */
async function pending(service: ApprovalService, count = 1): Promise<readonly Approval[]> {
  let found: readonly Approval[] = []
  await expect
    .poll(async () => (found = (await service.list()).filter(({ state }) => state === 'pending')).length)
    .toBe(count)
  return found
}
const outcome = async (call: Promise<void>): Promise<string> =>
  call.then(
    () => 'passed',
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )

describe.each(engines)('the gate on %s', (engine) => {
  it('lets harmless calls pass without asking', async () => {
    const { gate, service } = await start(engine)
    await gate(attempt({ tool: 'kv_set', risk: 'write' }))
    await gate(attempt({ tool: 'file_write', risk: 'write' }))
    expect(await service.list()).toEqual([])
  })

  it('waits for a person, and an approval is for exactly this call, once', async () => {
    const { gate, service, lines } = await start(engine)
    let by = ''
    const call = gate(
      attempt({
        approve: (who) => {
          by = who
        },
      }),
    )
    const [request] = await pending(service)
    expect(request).toMatchObject({
      tool: 'shell_exec',
      risk: 'critical',
      payload: { command: 'ls' },
      summary: 'shell_exec ls',
      turnId: 'turn',
      callId: 'call',
    })
    const answer = await service.approve(request?.id ?? '', 'operator')
    expect(answer).toMatchObject({ state: 'approved', decidedBy: 'operator' })
    expect(await outcome(call)).toBe('passed')
    expect(by).toBe('operator')
    const again = gate(attempt({ callId: 'call2' }))
    const [second] = await pending(service)
    expect(second?.id).not.toBe(request?.id)
    await service.reject(second?.id ?? '', 'operator')
    expect(await outcome(again)).toContain('shell_exec was not done, because a person rejected it')
    expect(await lines()).toEqual([
      expect.stringMatching(/^approval \S+ requested, risk critical, action [0-9a-f]{64}: shell_exec ls$/),
      expect.stringMatching(/approved by operator/),
      expect.stringMatching(/requested/),
      expect.stringMatching(/rejected by operator/),
    ])
  })

  it('tells the agent why it was rejected, and the audit trail; a reason of blanks is none', async () => {
    const { gate, service, lines } = await start(engine)
    const call = gate(attempt())
    const [request] = await pending(service)
    const answered = await service.reject(request?.id ?? '', 'operator', ' Use "ls -a"\ninstead. ')
    expect(answered.reason).toBe('Use "ls -a"\ninstead.')
    expect(await outcome(call)).toContain(String.raw`because a person rejected it: "Use \"ls -a\"\ninstead."`)
    expect(await service.find(answered.id)).toMatchObject({ state: 'rejected', reason: answered.reason })
    expect((await lines()).at(-1)).toContain('; reason: Use "ls -a"')
    const again = gate(attempt({ callId: 'call2', args: { command: 'pwd' } }))
    const [second] = await pending(service)
    expect((await service.reject(second?.id ?? '', 'operator', ' \n ')).reason).toBeUndefined()
    expect(await outcome(again)).toContain('because a person rejected it.')
  })

  it('asks again for other arguments, also when the first were approved', async () => {
    const { gate, service } = await start(engine)
    const call = gate(attempt())
    const [request] = await pending(service)
    const other = gate(attempt({ callId: 'call2', args: { command: 'rm -rf /' } }))
    await pending(service, 2)
    await service.approve(request?.id ?? '', 'operator')
    expect(await outcome(call)).toBe('passed')
    const [left] = await pending(service)
    expect(left?.payload).toEqual({ command: 'rm -rf /' })
    await service.reject(left?.id ?? '', 'operator')
    expect(await outcome(other)).toContain('rejected')
  })

  it('one of twenty answers at the same time wins, and the audit tells of that one only', async () => {
    const { gate, service, lines, told } = await start(engine)
    const call = gate(attempt())
    const [request] = await pending(service)
    const id = request?.id ?? ''
    const answers = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => (n % 2 === 0 ? service.approve(id, `p${n}`) : service.reject(id, `p${n}`))),
    )
    const won = answers.filter((each) => each.status === 'fulfilled')
    expect(won).toHaveLength(1)
    expect(answers.filter((each) => each.status === 'rejected' && each.reason.code === 'conflict')).toHaveLength(19)
    expect(await lines()).toHaveLength(2)
    expect(told).toHaveLength(2)
    expect(await outcome(call)).toEqual(
      won[0]?.value.state === 'approved' ? 'passed' : expect.stringContaining('rejected'),
    )
  })

  it('rows that no daemon wrote as they are permit nothing', async () => {
    const { db, gate, service, clock } = await start(engine, { two_people: [{ tools: ['both'] }], timeout_secs: 30 })
    const unproven = 'its row was not written by a daemon on this database as it is'
    // Answered by the row.
    const answered = gate(attempt())
    const [one] = await pending(service)
    const id = one?.id ?? ''
    const approved = async () => db.run`UPDATE approvals_request SET state = 'approved', decided_by = 'operator',
      decided_at = ${new Date(clock.now()).toISOString()} WHERE id = ${id}`
    await approved()
    await service.decidedElsewhere(id)
    expect(await outcome(answered)).toContain(unproven)
    await expect(service.approve(id, 'operator')).rejects.toMatchObject({ code: 'conflict' })
    // A copy of an answer, for another call.
    const copied = gate(attempt({ args: { command: 'cat' }, turnId: 'next' }))
    const [two] = await pending(service)
    await service.approve(two?.id ?? '', 'operator')
    expect(await outcome(copied)).toBe('passed')
    await db.run`UPDATE approvals_request SET consumed_at = NULL, agent_id = 'other' WHERE id = ${two?.id ?? ''}`
    const other = gate(attempt({ args: { command: 'cat' }, agent: { ...agent, id: 'other' }, turnId: 'next' }))
    expect(await outcome(other)).toContain(unproven)
    // Another text before the person.
    const shown = gate(attempt({ args: { command: 'rm' }, turnId: 'third' }))
    const [three] = await pending(service)
    await db.run`UPDATE approvals_request SET summary = 'shell_exec ls' WHERE id = ${three?.id ?? ''}`
    await expect(service.approve(three?.id ?? '', 'operator')).rejects.toMatchObject({ code: 'conflict' })
    expect((await service.list()).filter(({ state }) => state === 'pending')).toEqual([])
    // The one who asked waits until its time is up.
    await clock.advance(31_000)
    expect(await outcome(shown)).toContain(unproven)
    // The first of two people.
    const both = gate(attempt({ tool: 'both', turnId: 'fourth' }))
    const [four] = await pending(service)
    await db.run`UPDATE approvals_request SET first_by = 'eve', first_person = 'eve' WHERE id = ${four?.id ?? ''}`
    expect(await service.find(four?.id ?? '')).toMatchObject({ state: 'pending', firstBy: undefined })
    await service.reject(four?.id ?? '', 'operator')
    await outcome(both)
    // A standing approval.
    await db.run`INSERT INTO approvals_grant (id, agent_id, agent_name, session_id, tool_name, standing_key, covers,
      approval_id, granted_at, granted_by, uses) VALUES ('g', 'agent', 'a', 'session', 'shell_exec', 'key', 'all', 'x',
      '2026-01-01T00:00:00.000Z', 'operator', 0)`
    const call = { agentId: 'agent', sessionId: 'session', tool: 'shell_exec', summary: '' }
    expect([await service.covers(call, { key: 'key' }), await service.grants()]).toEqual([undefined, []])
  })

  it('two people: one of twenty first answers counts, another person is needed, and in time', async () => {
    const { gate, service, clock, lines } = await start(engine, { two_people: [{}], timeout_secs: 30 })
    const call = gate(attempt())
    const [request] = await pending(service)
    const id = request?.id ?? ''
    const firsts = await Promise.allSettled(Array.from({ length: 20 }, () => service.approve(id, 'ann')))
    expect(firsts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await lines()).toHaveLength(2)
    await expect(service.approve(id, 'ann')).rejects.toMatchObject({ code: 'forbidden' })
    await expect(service.approve(id, 'bob', 'session')).rejects.toMatchObject({ code: 'forbidden' })
    expect(await service.find(id)).toMatchObject({ state: 'pending', needed: 2, firstBy: 'ann' })
    const seconds = await Promise.allSettled(['bob', 'cid', 'dan'].map((name) => service.approve(id, name)))
    expect(seconds.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    expect(await outcome(call)).toBe('passed')

    const late = outcome(gate(attempt({ callId: 'late', args: { command: 'date' } })))
    const [next] = await pending(service)
    await service.approve(next?.id ?? '', 'ann')
    clock.jump(30_000)
    await expect(service.approve(next?.id ?? '', 'bob')).rejects.toMatchObject({ code: 'conflict' })
    expect(await late).toContain('nobody approved it')
  })

  it('two people: a first approval counts no longer than the credential that it was given with', async () => {
    const { gate, service, revoked } = await start(engine, { two_people: [{}] })
    const call = gate(attempt())
    const [request] = await pending(service)
    const id = request?.id ?? ''
    const device: Principal = { kind: 'device', id: 'd1', name: 'phone of ann' }
    await service.approve(id, device)
    revoked.add(device)
    expect(await service.approve(id, 'bob')).toMatchObject({ state: 'pending', firstBy: 'bob' })
    expect(await service.approve(id, 'cid')).toMatchObject({ state: 'approved' })
    expect(await outcome(call)).toBe('passed')
  })

  it('two people: each may answer at another daemon, and their credentials are known there', async () => {
    const { gate, service, boot, revoked } = await start(engine, { two_people: [{}] })
    const { service: other } = await boot()
    const call = gate(attempt())
    const [request] = await pending(service)
    const id = request?.id ?? ''
    const [ann, bob, cid] = ['ann', 'bob', 'cid'].map((name): Principal => ({ kind: 'device', id: name, name }))
    if (!ann || !bob || !cid) throw new Error('nobody')
    await service.approve(id, ann)
    await expect(other.approve(id, ann)).rejects.toMatchObject({ code: 'forbidden' })
    revoked.add(ann)
    expect(await other.approve(id, bob)).toMatchObject({ state: 'pending', firstBy: 'device "bob"' })
    expect(await service.approve(id, cid)).toMatchObject({ state: 'approved' })
    expect(await outcome(call)).toBe('passed')
  })

  it('another chat is noted as asked once, and not for what was answered', async () => {
    const { gate, service, lines } = await start(engine)
    const call = gate(attempt())
    const [request] = await pending(service)
    const id = request?.id ?? ''
    const message = { id: '00000000-0000-4000-8000-00000000000a', channel: 'email', to: 'boss' }
    await Promise.all([service.noteAsked(id, message), service.noteAsked(id, message)])
    expect(await service.escalations()).toEqual([{ ...message, approvalId: id }])
    expect((await lines()).filter((line) => line.includes('escalated to email chat boss'))).toHaveLength(1)
    await service.reject(id, 'operator')
    expect(await outcome(call)).toContain('rejected')
    await service.noteAsked(id, { ...message, id: '00000000-0000-4000-8000-00000000000b' })
    expect(await service.escalations()).toEqual([])
  })

  it('counts as rejected when nobody answers in time', async () => {
    const { gate, service, clock, lines } = await start(engine, {
      timeout_secs: 60,
      agent_timeout_secs: { somebody: 10, [agent.id]: 30, [agent.name]: 20 },
    })
    const call = gate(attempt())
    const [request] = await pending(service)
    clock.advance(29_999)
    expect(await service.find(request?.id ?? '')).toMatchObject({ state: 'pending' })
    clock.advance(1)
    expect(await outcome(call)).toContain('nobody approved it within 30 seconds')
    expect(await service.find(request?.id ?? '')).toMatchObject({ state: 'expired', decidedBy: 'timeout' })
    await expect(service.approve(request?.id ?? '', 'operator')).rejects.toMatchObject({ code: 'conflict' })
    expect((await lines()).at(-1)).toContain('expired (timeout)')
    expect(clock.waiting).toBe(0)
  })

  it('what ran out while the process was down is expired at the next start, and the rest keeps its time', async () => {
    const { service, clock, unload, boot } = await start(engine)
    const input = {
      agentId: 'agent',
      agentName: 'a',
      tool: 't',
      action: 't',
      description: '',
      summary: 't',
      payload: {},
      risk: 'low' as const,
    }
    const short = await service.request({ ...input, timeoutSecs: 10 })
    const long = await service.request({ ...input, timeoutSecs: 100 })
    unload()
    clock.advance(20_000)
    const next = await boot()
    expect(await next.service.find(short.id)).toMatchObject({ state: 'expired', decidedBy: 'timeout' })
    expect(await next.service.find(long.id)).toMatchObject({ state: 'pending' })
    clock.advance(80_000)
    await expect.poll(async () => (await next.store.find(long.id))?.state).toBe('expired')
  })

  it('an answer that comes after its time is refused although the timer has not run', async () => {
    const { service, clock } = await start(engine)
    const request = await service.request({
      agentId: 'agent',
      agentName: 'a',
      tool: 't',
      action: 't',
      description: '',
      summary: 't',
      payload: {},
      risk: 'low',
    })
    service.close()
    clock.advance(600_000)
    await expect(service.approve(request.id, 'operator')).rejects.toMatchObject({
      code: 'conflict',
      details: { status: 'expired' },
    })
  })

  it('a call that waited goes on after a restart without asking twice, whenever it was approved', async () => {
    const { gate, service, unload, boot, told } = await start(engine)
    const before = gate(attempt())
    const [request] = await pending(service)
    unload()
    expect(await outcome(before)).toContain('being reloaded')
    const second = await boot()
    const resumed = second.gate(attempt())
    await expect.poll(() => second.service.awaited(request?.id ?? '')).toBe(true)
    await second.service.approve(request?.id ?? '', 'operator')
    expect(await outcome(resumed)).toBe('passed')
    expect(told.filter(({ state }) => state === 'pending')).toHaveLength(1)
  })

  it('an approval given while nobody waited is used by the same call after a restart, once', async () => {
    const { gate, service, unload, boot } = await start(engine)
    const leave = new AbortController()
    const before = gate(attempt({ signal: leave.signal }))
    const [request] = await pending(service)
    leave.abort(new Error('the service is being replaced'))
    await outcome(before)
    await service.approve(request?.id ?? '', 'operator')
    unload()
    const next = await boot()
    expect(await outcome(next.gate(attempt()))).toBe('passed')
    expect(await next.service.list()).toHaveLength(1)
    const again = next.gate(attempt())
    await next.service.reject((await pending(next.service))[0]?.id ?? '', 'operator')
    expect(await outcome(again)).toContain('rejected')
  })

  it('an approval of a device is used by another call at another daemon, once, while the device is accepted', async () => {
    const { gate, service, boot, revoked } = await start(engine)
    const device: Principal = { kind: 'device', id: 'd1', name: 'phone of ann' }
    const other = await boot()
    const approve = async (turnId: string): Promise<void> => {
      const leave = new AbortController()
      const left = outcome(gate(attempt({ turnId, signal: leave.signal })))
      const [request] = await pending(service)
      leave.abort(new Error('nobody waits'))
      await left
      await service.approve(request?.id ?? '', device)
    }
    await approve('one')
    expect(await outcome(other.gate(attempt({ turnId: 'two' })))).toBe('passed')
    await approve('three')
    revoked.add(device)
    const call = outcome(other.gate(attempt({ turnId: 'four' })))
    await other.service.reject((await pending(other.service))[0]?.id ?? '', 'operator')
    expect(await call).toContain('rejected')
  })

  it('a wait that is left while the answer is looked up ends with its reason', async () => {
    const { service, gate } = await start(engine)
    const call = gate(attempt())
    const [request] = await pending(service)
    const leave = async (): Promise<void> => {
      const left = new AbortController()
      const decision = service.decision(request?.id ?? '', left.signal)
      left.abort(new Error('left'))
      await expect(decision).rejects.toThrow('left')
    }
    await leave()
    await service.approve(request?.id ?? '', 'operator')
    await leave()
    expect(await outcome(call)).toBe('passed')
  })

  it('the same action in the same conversation uses an approval whose turn is gone, until it is too old', async () => {
    const { gate, service, clock } = await start(engine, { approved_for_secs: 100 })
    const leave = new AbortController()
    const first = gate(attempt({ signal: leave.signal }))
    const [request] = await pending(service)
    leave.abort(new Error('left'))
    expect(await outcome(first)).toBe('left')
    await service.approve(request?.id ?? '', 'operator')
    const elsewhere = gate(attempt({ turnId: 'turn2', sessionId: 'session2' }))
    const [other] = await pending(service)
    await service.reject(other?.id ?? '', 'operator')
    expect(await outcome(elsewhere)).toContain('rejected')
    clock.advance(99_000)
    expect(await outcome(gate(attempt({ turnId: 'turn3' })))).toBe('passed')
    const late = gate(attempt({ turnId: 'turn4' }))
    await service.reject((await pending(service))[0]?.id ?? '', 'operator')
    expect(await outcome(late)).toContain('rejected')
  })

  it('does not ask again in a turn for what was rejected in it', async () => {
    const { gate, service, told } = await start(engine)
    const call = gate(attempt())
    await service.reject((await pending(service))[0]?.id ?? '', 'operator')
    expect(await outcome(call)).toContain('rejected')
    expect(await outcome(gate(attempt({ callId: 'call2' })))).toContain('rejected')
    expect(told.filter(({ state }) => state === 'pending')).toHaveLength(1)
  })

  it('two equal calls at once ask for two approvals', async () => {
    const { gate, service } = await start(engine)
    const calls = [gate(attempt({ callId: 'a' })), gate(attempt({ callId: 'b' }))]
    for (const { id } of await pending(service, 2)) await service.approve(id, 'operator')
    expect(await Promise.all(calls.map(outcome))).toEqual(['passed', 'passed'])
    expect(await service.list()).toHaveLength(2)
  })

  it('a call that finds the request of an equal one which is about to wait for it asks for its own', async () => {
    const { gate, service, store } = await start(engine)
    const asked = Promise.withResolvers<readonly Approval[]>()
    let second: Promise<string> | undefined
    const commit = store.commit.bind(store)
    vi.spyOn(store, 'commit').mockImplementationOnce(async (...statements: readonly Statement[]) => {
      await commit(...statements)
      second = outcome(gate(attempt({ callId: 'b' })))
      asked.resolve(pending(service, 2))
      await asked.promise
    })
    const first = outcome(gate(attempt({ callId: 'a' })))
    for (const { id } of await asked.promise) await service.approve(id, 'operator')
    expect([await first, await second]).toEqual(['passed', 'passed'])
  })

  it('an approval that a call is about to use is not used by an equal one', async () => {
    const { gate, service, store } = await start(engine)
    let second: Promise<string> | undefined
    const consume = store.consume.bind(store)
    vi.spyOn(store, 'consume').mockImplementationOnce(async (...use) => {
      second = outcome(gate(attempt({ callId: 'b' })))
      await pending(service)
      return consume(...use)
    })
    const first = outcome(gate(attempt({ callId: 'a' })))
    const [request] = await pending(service)
    await service.approve(request?.id ?? '', 'operator')
    expect(await first).toBe('passed')
    await service.reject((await pending(service))[0]?.id ?? '', 'operator')
    expect(await second).toContain('rejected')
  })

  it('of two equal calls at once one takes the request that nobody waits for, and the other asks', async () => {
    const { gate, service } = await start(engine)
    const left = new AbortController()
    const gone = outcome(gate(attempt({ turnId: 'gone', signal: left.signal })))
    const [request] = await pending(service)
    left.abort(new Error('left'))
    await gone
    const calls = [gate(attempt({ callId: 'a' })), gate(attempt({ callId: 'b' }))]
    const asked = await pending(service, 2)
    expect(asked.map(({ id }) => id)).toContain(request?.id)
    for (const { id } of asked) await service.approve(id, 'operator')
    expect(await Promise.all(calls.map(outcome))).toEqual(['passed', 'passed'])
    expect(await service.list()).toHaveLength(2)
  })

  it('refuses the sixth that would wait', async () => {
    const { service, lines } = await start(engine)
    const input = {
      agentId: 'agent',
      agentName: 'a',
      tool: 't',
      action: 't',
      description: '',
      summary: 't',
      payload: {},
      risk: 'low' as const,
    }
    const asked = await Promise.allSettled(Array.from({ length: 9 }, () => service.request(input)))
    expect(asked.filter(({ status }) => status === 'fulfilled')).toHaveLength(5)
    expect(asked.filter((each) => each.status === 'rejected' && each.reason.code === 'rate_limit')).toHaveLength(4)
    expect(await lines()).toHaveLength(5)
    await service.request({ ...input, agentId: 'another' })
    await service.withdraw('agent', 'the agent was killed')
    expect((await service.list('agent')).map(({ state, decidedBy }) => [state, decidedBy])).toEqual(
      Array.from({ length: 5 }, () => ['expired', 'the agent was killed']),
    )
    await service.request(input)
  })

  it('asks about everything, or nothing, where the policy says so, and about what is refused otherwise', async () => {
    const always = await start(engine, { policy: 'always' })
    const call = always.gate(attempt({ tool: 'system_time', risk: 'read', args: {} }))
    await always.service.approve((await pending(always.service))[0]?.id ?? '', 'operator')
    expect(await outcome(call)).toBe('passed')
    const never = await start(engine, { agents: { assistant: 'never' } })
    await never.gate(attempt())
    const risky = await start(engine)
    const tainted = risky.gate(
      attempt({ tool: 'web_fetch', risk: 'read', args: { url: 'http://a' }, refusal: 'web_fetch refuses Secret' }),
    )
    const [request] = await pending(risky.service)
    expect(request?.description).toContain('web_fetch refuses Secret')
    await risky.service.approve(request?.id ?? '', 'operator')
    expect(await outcome(tainted)).toBe('passed')
  })

  it('asks about a call that may do harm, after something that looked like instructions', async () => {
    const { gate, service } = await start(engine)
    const suspicion = 'a page looked like instructions'
    await gate(attempt({ tool: 'send', risk: 'read', args: { harm: 'high' } }))
    await gate(attempt({ tool: 'send', risk: 'read', args: { harm: 'medium' }, suspicion }))
    const call = gate(attempt({ tool: 'send', risk: 'read', args: { harm: 'high' }, suspicion }))
    const [request] = await pending(service)
    expect(request?.description).toContain(suspicion)
    await service.reject(request?.id ?? '', 'operator')
    expect(await outcome(call)).toContain('a person rejected it')
  })

  it('forgets what was decided long ago', async () => {
    const { service, clock } = await start(engine, { keep_days: 2 })
    const request = await service.request({
      agentId: 'agent',
      agentName: 'a',
      tool: 't',
      action: 't',
      description: '',
      summary: 't',
      payload: {},
      risk: 'low',
    })
    await service.reject(request.id, 'operator')
    clock.advance(86_400_000)
    await service.prune()
    expect(await service.list()).toHaveLength(1)
    clock.advance(86_400_001)
    await service.prune()
    expect(await service.list()).toEqual([])
  })

  describe('an approval for the session', () => {
    const ask = (command: string, more: Partial<ToolCallAttempt> = {}): ToolCallAttempt =>
      attempt({ tool: 'run', args: { command }, callId: `call ${command}`, ...more })
    /** Approves the first call for the session. */
    async function granted(command: string, config: v.InferInput<typeof ApprovalsConfig> = {}) {
      const all = await start(engine, config)
      const call = all.gate(ask(command))
      const [request] = await pending(all.service)
      await all.service.approve(request?.id ?? '', 'operator', 'session')
      expect(await outcome(call)).toBe('passed')
      return all
    }

    it('covers the same program as long as it only reads, and nothing else of the agent', async () => {
      const { gate, service, lines } = await granted('ls -l')
      await gate(ask('ls -la src'))
      await gate(ask('ls'))
      expect((await service.grants())[0]).toMatchObject({
        uses: 2,
        covers: expect.stringContaining('any ls that only'),
      })
      expect((await lines()).filter((line) => line.startsWith('allowed by grant'))).toHaveLength(2)
      for (const [n, [other, more]] of (
        [
          ['cat notes.md', {}],
          ['ls /etc', {}],
          ['ls ../other', {}],
          ['ls; rm -rf /', {}],
          ['./ls', {}],
          ['ls', { sessionId: 'another' }],
          ['ls', { agent: { ...agent, id: 'another' } }],
          ['ls', { tool: 'shell_exec' }],
          ['ls', { suspicion: 'a page looked like instructions' }],
        ] as const
      ).entries()) {
        const call = gate(ask(other, { ...more, turnId: `turn ${n}` }))
        const [request] = await pending(service)
        expect(request?.state, other).toBe('pending')
        await service.reject(request?.id ?? '', 'operator')
        expect(await outcome(call), other).toContain('a person rejected it')
      }
    })

    it('covers words from outside only where they can do no harm', async () => {
      const outside = { refusal: 'its arguments may come from outside', labels: ['UserInput', 'ExternalNetwork'] }
      const own = { refusal: 'its arguments may come from a message', labels: ['UserInput'] }
      const reading = await granted('ls')
      let by = ''
      await reading.gate(ask('ls src', { ...outside, approve: (who) => (by = who) }))
      expect(by).toBe('operator')
      const { gate, service } = await granted('npm test')
      await gate(ask('npm test', { ...own, callId: 'again' }))
      for (const flagged of [outside, { refusal: 'it is not known where its arguments come from' }]) {
        const call = gate(ask('npm test', { ...flagged, callId: 'flagged', turnId: flagged.refusal }))
        const [request] = await pending(service)
        expect(request?.standing).toBe(undefined)
        await service.reject(request?.id ?? '', 'operator')
        expect(await outcome(call)).toContain('rejected')
      }
    })

    it('covers no other words of a program that does more than read', async () => {
      const { gate, service } = await granted('npm test')
      await gate(ask('npm test', { callId: 'again' }))
      const call = gate(ask('npm test --script-shell=./mine'))
      const [request] = await pending(service)
      await service.reject(request?.id ?? '', 'operator')
      expect(await outcome(call)).toContain('rejected')
    })

    it.each(['rm -r build', 'sh -c ls', 'ls | sh', 'python3 -c "1"', 'curl https://example.com'])(
      'is refused for %s',
      async (command) => {
        const { gate, service } = await start(engine)
        const call = gate(ask(command))
        const [request] = await pending(service)
        expect(request).toMatchObject({ risk: 'critical', standing: undefined })
        await expect(service.approve(request?.id ?? '', 'operator', 'session')).rejects.toMatchObject({
          code: 'forbidden',
        })
        await service.approve(request?.id ?? '', 'operator')
        expect(await outcome(call)).toBe('passed')
      },
    )

    it('is refused for a call that was flagged, however harmless it is', async () => {
      const { gate, service } = await start(engine)
      const call = gate(ask('ls', { suspicion: 'a page looked like instructions' }))
      const [request] = await pending(service)
      await expect(service.approve(request?.id ?? '', 'operator', 'session')).rejects.toMatchObject({
        code: 'forbidden',
      })
      await service.reject(request?.id ?? '', 'operator')
      await outcome(call)
    })

    it('ends with its session and when it is revoked, and both are in the audit trail', async () => {
      const { gate, service, lines } = await granted('ls')
      const [grant] = await service.grants('agent', 'session')
      await service.revoke(grant?.id ?? '', 'operator')
      await expect(service.revoke(grant?.id ?? '', 'operator')).rejects.toMatchObject({ code: 'conflict' })
      const call = gate(ask('ls', { callId: 'second' }))
      const [request] = await pending(service)
      await service.approve(request?.id ?? '', 'operator', 'session')
      await outcome(call)
      await service.revokeAll('agent', 'session', 'the session ended')
      expect(await service.grants()).toEqual([])
      expect((await lines()).filter((line) => /^grant \S+ of session session revoked/.test(line))).toHaveLength(2)
    })

    it('permits nothing once it is revoked, also when its row says that it is not', async () => {
      const { db, service } = await granted('ls')
      const [grant] = await service.grants('agent', 'session')
      const rows = await db.all<{ standing_key: string; tool_name: string }>`SELECT * FROM approvals_grant`
      const call = { agentId: 'agent', sessionId: 'session', tool: rows[0]?.tool_name ?? '', summary: '' }
      const key = rows[0]?.standing_key ?? ''
      expect(await service.covers(call, { key })).toBe('operator')
      await service.revoke(grant?.id ?? '', 'operator')
      await db.run`UPDATE approvals_grant SET revoked_at = NULL, revoked_by = NULL`
      expect([await service.covers(call, { key }), await service.grants()]).toEqual([undefined, []])
    })

    it('is known to be revoked by a home that did not run then, from its next start on', async () => {
      const { db, service } = await granted('ls')
      const [grant] = await service.grants('agent', 'session')
      await service.revoke(grant?.id ?? '', 'operator')
      await db.run`INSERT INTO approvals_grant (id, agent_id, agent_name, session_id, tool_name, standing_key, covers,
        approval_id, granted_at, granted_by, proof, uses, revoked_at) SELECT 'forged', agent_id, agent_name, session_id,
        tool_name, standing_key, covers, approval_id, granted_at, granted_by, proof, uses, revoked_at FROM approvals_grant`
      const home = await mkdtemp(join(tmpdir(), 'svc-revoked-'))
      onTestFinished(() => rm(home, { recursive: true, force: true }))
      await new RevokedGrants(home).catchUp({ db, log: recorder().log, proofs: await proofs() })
      await db.run`UPDATE approvals_grant SET revoked_at = NULL, revoked_by = NULL`
      const again = new RevokedGrants(home)
      await again.catchUp({ db, log: recorder().log, proofs: await proofs() })
      expect([...(await again.all()).keys()]).toEqual([grant?.id])
      const known = new ApprovalStore(db, recorder().log, async () => new ApprovalProofs(codes, recorder().log, again))
      const unknown = new ApprovalStore(db, recorder().log, async () => new ApprovalProofs(codes, recorder().log))
      expect([await known.grants(undefined, undefined), await unknown.grants(undefined, undefined)]).toEqual([
        [],
        [expect.objectContaining({ id: grant?.id })],
      ])
    })

    it('answers what waits already and what is asked in the same moment, and nothing beside it', async () => {
      const { gate, service, lines, granted } = await start(engine)
      const calls = ['ls', 'ls src', 'ls docs', 'cat a'].map((command) => outcome(gate(ask(command))))
      const elsewhere = outcome(gate(ask('ls', { turnId: 'another turn', sessionId: 'another' })))
      const waiting = await pending(service, 5)
      const first = waiting.find(({ summary, sessionId }) => summary === 'run ls' && sessionId === 'session')
      await service.approve(first?.id ?? '', 'operator', 'session')
      expect(await Promise.all(calls.slice(0, 3))).toEqual(['passed', 'passed', 'passed'])
      const left = await pending(service, 2)
      expect(left.map(({ summary }) => summary).toSorted()).toEqual(['run cat a', 'run ls'])
      expect((await service.grants())[0]).toMatchObject({ uses: 2 })
      expect(granted()).toBe(2)
      expect((await lines()).filter((line) => /approved by grant \S+ of session session/.test(line))).toHaveLength(2)
      expect((await service.list()).filter(({ scope }) => scope === 'session')).toHaveLength(3)
      for (const { id } of left) await service.reject(id, 'operator')
      await Promise.all([...calls, elsewhere])
    })

    it('is counted from the start, and by each grant and each end of one', async () => {
      const { service, boot } = await granted('ls')
      expect(service.standing).toBe(1)
      const next = await boot()
      expect(next.service.standing).toBe(1)
      await next.service.revokeAll('agent', undefined, 'the agent was killed')
      expect(next.service.standing).toBe(0)
    })

    it('is given by nobody who can be removed', async () => {
      const { gate, service } = await start(engine)
      const call = gate(ask('ls'))
      const [request] = await pending(service)
      for (const by of ['device "phone"', 'session "ada"', 'device "operator"', ''])
        await expect(service.approve(request?.id ?? '', by, 'session')).rejects.toMatchObject({ code: 'forbidden' })
      expect(await service.grants()).toEqual([])
      await service.approve(request?.id ?? '', 'device "phone"')
      expect(await outcome(call)).toBe('passed')
    })

    describe('a hostile agent', () => {
      /** It is asked about, and cannot be approved for longer than once. */
      const isAsked = async (
        { gate, service }: { gate: (attempt: ToolCallAttempt) => Promise<void>; service: ApprovalService },
        call: ToolCallAttempt,
      ): Promise<Approval | undefined> => {
        const passing = gate(call)
        const [request] = await pending(service)
        await service.reject(request?.id ?? '', 'operator')
        expect(await outcome(passing)).toContain('rejected')
        return request
      }
      const own = { refusal: 'its arguments may come from a message', labels: ['UserInput'] }

      it.each([
        ['a file of its workspace', { tool: 'file_write', risk: 'write', args: { path: 'package.json' } }],
        ['a file that a page told it to write', { tool: 'file_write', risk: 'write', labels: ['ExternalNetwork'] }],
        ['a file in another of its sessions', { tool: 'file_write', risk: 'write', sessionId: 'another' }],
      ] as const)(
        'wins nothing from pasted text that has it change %s, which a granted program reads',
        async (_, change) => {
          const all = await granted('npm test')
          await all.gate(ask('npm test', { ...own, callId: 'unchanged' }))
          await all.gate(attempt({ ...change, callId: 'write' }))
          expect(await all.service.grants()).toEqual([])
          await isAsked(all, ask('npm test', { ...own, callId: 'changed' }))
          expect((await all.lines()).filter((line) => line.includes('the agent changed something since'))).toHaveLength(
            1,
          )
        },
      )

      it('keeps what only reads, and what it does not change by reading', async () => {
        const reading = await granted('ls')
        await reading.gate(attempt({ tool: 'file_write', risk: 'write', args: {} }))
        await reading.gate(ask('ls src'))
        const { gate, service } = await granted('npm test')
        await gate(attempt({ tool: 'file_read', risk: 'read', args: {} }))
        await gate(attempt({ tool: 'file_write', risk: 'write', args: {}, agent: { ...agent, id: 'another' } }))
        expect(await service.grants()).toHaveLength(1)
      })

      it('cannot have an approved call repeated by a page it read, whatever its tool refuses', async () => {
        const page = { labels: ['UserInput', 'ExternalNetwork'] }
        for (const labels of [page.labels, ['UntrustedAgent']]) {
          const all = await start(engine, { policy: 'always' })
          const pay = (more: Partial<ToolCallAttempt> = {}): ToolCallAttempt =>
            attempt({ tool: 'mcp_bank_pay', args: { invoice: 7 }, ...more })
          const call = all.gate(pay({ labels: ['UserInput'] }))
          const [request] = await pending(all.service)
          await all.service.approve(request?.id ?? '', 'operator', 'session')
          await outcome(call)
          await all.gate(pay({ callId: 'again', labels: ['UserInput'] }))
          const asked = await isAsked(all, pay({ callId: 'page', turnId: 'page', labels }))
          expect(asked?.standing).toBe(undefined)
        }
      })

      it('cannot hand secrets to an address that was approved', async () => {
        const all = await start(engine, { policy: 'always' })
        const get = (more: Partial<ToolCallAttempt> = {}): ToolCallAttempt =>
          attempt({ tool: 'web_fetch', risk: 'read', args: { url: 'https://a.example/' }, ...more })
        const call = all.gate(get())
        const [request] = await pending(all.service)
        await all.service.approve(request?.id ?? '', 'operator', 'session')
        await outcome(call)
        await all.gate(get({ callId: 'again', labels: ['UserInput', 'ExternalNetwork'] }))
        for (const label of ['Secret', 'Pii'])
          await isAsked(
            all,
            get({ callId: label, turnId: label, labels: ['UserInput', label], refusal: `web_fetch refuses ${label}` }),
          )
      })

      it.each([
        ['ps', 'ps eww'],
        ['ps', 'ps auxe'],
        ['ps', 'ps -o args= -e e'],
        ['grep', 'grep -hf/etc/passwd words'],
        ['grep', 'grep -rf../other words'],
        ['grep', 'grep -f ~/.ssh/id_rsa words'],
        ['cat', 'cat notes/../../secret'],
        ['cat', 'cat /proc/self/environ'],
        ['sort', 'sort -o stolen notes'],
        ['date', 'date -f /etc/shadow'],
        ['du', 'du -aX/etc/shadow'],
        ['ls', 'ls $(cat key)'],
        ['ls', 'ls\nrm -r /'],
        ['ls', 'ls > package.json'],
      ])('who may run %s for a session is asked about: %s', async (program, command) => {
        await isAsked(await granted(program), ask(command, { callId: 'more', turnId: 'more' }))
      })
    })

    it('holds for nobody once it is switched off, and of a session only so many do', async () => {
      const { gate, service } = await granted('ls', { grants_per_session: 1 })
      const call = gate(ask('cat a'))
      const [request] = await pending(service)
      await expect(service.approve(request?.id ?? '', 'operator', 'session')).rejects.toMatchObject({
        code: 'conflict',
      })
      await service.reject(request?.id ?? '', 'operator')
      await outcome(call)
      const off = await start(engine, { session_scope: false })
      const asked = off.gate(ask('ls'))
      const [one] = await pending(off.service)
      await expect(off.service.approve(one?.id ?? '', 'operator', 'session')).rejects.toMatchObject({
        code: 'forbidden',
      })
      await off.service.reject(one?.id ?? '', 'operator')
      await outcome(asked)
    })
  })
})
