import Sqlite from 'better-sqlite3'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import * as v from 'valibot'
import { RowProofs } from '../../../core/auth/row-proof.ts'
import { deriveKey } from '../../../core/storage/vault-key.ts'
import { vaultKeySource } from '../../../core/storage/vault-key-source.ts'
import { ApprovalProofs } from '../../../plugins/approvals/proof.ts'
import { RequestRow } from '../../../plugins/approvals/schema.ts'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'
import { turnPlugins } from '../plugin-test.ts'

const launcher = fileURLToPath(new URL('../../fixtures/plugins/launcher', import.meta.url))
const plugins = [
  ...turnPlugins,
  'files',
  'kv',
  'clock',
  'web',
  'shell',
  'system',
  'approvals',
  'providers/builtin',
  launcher,
]
let home: string
let launches: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-approvals-'))
  launches = join(home, 'launches.log')
})
afterEach(async () => {
  await rm(home, { recursive: true, force: true })
})

/** Answers a request as somebody who can write to the database, or as a daemon that ends before the turn hears of it. */
async function approveRow(id: string, isProven: boolean): Promise<void> {
  const db = new Sqlite(join(home, 'data', 'svc.db'))
  const derive = () => deriveKey(vaultKeySource({ home_dir: home }), 'approvals')
  const proofs = new ApprovalProofs(new RowProofs({ derive, vault: { write: async () => {} } }), console)
  const row = v.parse(RequestRow, db.prepare('SELECT * FROM approvals_request WHERE id = ?').get(id))
  const answer = { state: 'approved', decided_at: row.requested_at, decided_by: 'operator' } as const
  const proof = isProven ? await proofs.ofRequest({ ...row, ...answer }) : row.proof
  db.prepare('UPDATE approvals_request SET state = ?, decided_at = ?, decided_by = ?, proof = ? WHERE id = ?').run(
    answer.state,
    answer.decided_at,
    answer.decided_by,
    proof,
    id,
  )
  db.close()
}

const boot = (approvals: Record<string, unknown> = {}): Promise<TestHost> =>
  startHost({ plugins, home, config: { plugins: { launcher: { file: launches }, approvals } } })
const spawn = async (host: TestHost, name = 'worker', more = ''): Promise<string> =>
  (
    await host.json('POST', '/api/agents', {
      manifest_toml: `name = "${name}"\n${more}\n[capabilities]\ntools = ["*"]\n`,
    })
  ).body.agent_id
const say = (host: TestHost, agent: string, message: string) =>
  host.json('POST', `/api/agents/${agent}/message`, { message })
/** Sends a message whose answer nobody is there to take: the daemon ends before. */
const leave = (host: TestHost, agent: string, message: string): Promise<unknown> =>
  say(host, agent, message).catch((error: unknown) => error)
const launched = async (): Promise<readonly string[]> =>
  existsSync(launches) ? (await readFile(launches, 'utf8')).trim().split('\n') : []
async function pending(host: TestHost, count = 1): Promise<readonly Json[]> {
  let found: readonly Json[] = []
  await expect
    .poll(async () => (found = (await host.json('GET', '/api/approvals?status=pending')).body.approvals).length)
    .toBe(count)
  return found
}

/** Settles when the only turn is in this state on disk. */
async function settled(host: TestHost, state: string): Promise<void> {
  const db = new Sqlite(join(host.home, 'data', 'svc.db'), { readonly: true })
  try {
    await expect.poll(() => db.prepare('SELECT state FROM journal_turn').pluck().all()).toEqual([state])
  } finally {
    db.close()
  }
}

describe('an action of high risk', () => {
  it('waits and is shown exactly', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "one"}')
    const [request] = await pending(host)
    expect(request).toMatchObject({
      agent_id: agent,
      agent_name: 'worker',
      tool_name: 'launch',
      action: 'launch',
      payload: { label: 'one' },
      risk_level: 'high',
      status: 'pending',
      timeout_secs: 600,
      intent: 'use launch',
      scopes: ['once', 'session'],
      session_covers: 'exactly this call',
      scope: null,
      action_summary: 'launch {"label":"one"}',
      decided_at: null,
      decided_by: null,
    })
    expect(await launched()).toEqual([])
    await host.json('POST', `/api/approvals/${request.id}/reject`)
    await answer
  })

  it('goes on when it is approved', async () => {
    await using host = await boot()
    const answer = say(host, await spawn(host), 'use launch {"label": "one"}')
    const [request] = await pending(host)
    const approved = await host.json('POST', `/api/approvals/${request.id}/approve`)
    expect(approved).toMatchObject({ status: 200, body: { id: request.id, status: 'approved' } })
    expect(Date.parse(approved.body.decided_at)).toBeGreaterThan(0)
    expect((await answer).body.response).toContain('launched one')
    expect(await launched()).toEqual(['one'])
  })

  it('stays in the list and in the audit trail when it is approved', async () => {
    await using host = await boot()
    const answer = say(host, await spawn(host), 'use launch {"label": "one"}')
    const [request] = await pending(host)
    await host.json('POST', `/api/approvals/${request.id}/approve`)
    await answer
    expect((await host.json('GET', '/api/approvals')).body).toMatchObject({
      total: 1,
      approvals: [{ id: request.id, status: 'approved', decided_by: 'operator' }],
    })
    const { body } = await host.json('GET', '/api/audit/recent?event_type=capability_check')
    const decisions = body.entries.map(
      ({ details }: { details: string }) => / (requested|approved) /.exec(details.replace(',', ' '))?.[1],
    )
    expect(decisions.sort()).toEqual(['approved', 'requested'])
    expect((await host.json('GET', '/api/audit/verify')).body.status).toBe('valid')
  })

  it('is not done when it is rejected, and the agent is told', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "no"}')
    const [request] = await pending(host)
    expect((await host.json('POST', `/api/approvals/${request.id}/reject`)).body).toMatchObject({
      id: request.id,
      status: 'rejected',
    })
    expect((await answer).body.response).toContain('a person rejected it')
    expect(await launched()).toEqual([])
  })

  /** An agent whose call is approved for the session. */
  async function granted(host: TestHost): Promise<{ readonly agent: string; readonly grant: string }> {
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "one"}')
    const [request] = await pending(host)
    const approved = await host.json('POST', `/api/approvals/${request.id}/approve`, { scope: 'session' })
    expect(approved).toMatchObject({ status: 200, body: { status: 'approved' } })
    await answer
    const { body } = await host.json('GET', `/api/approvals/grants?agent_id=${agent}`)
    return { agent, grant: `/api/approvals/grants/${body.grants[0].id}` }
  }

  it('is approved once or for the session, and not for ever', async () => {
    await using host = await boot()
    const answer = say(host, await spawn(host), 'use launch {"label": "one"}')
    const [request] = await pending(host)
    const path = `/api/approvals/${request.id}`
    expect(await host.json('POST', `${path}/approve`, { scope: 'always' })).toMatchObject({ status: 400 })
    expect((await host.json('GET', path)).body.status).toBe('pending')
    await host.json('POST', `${path}/reject`)
    await answer
  })

  it('that is approved for the session passes when it comes again', async () => {
    await using host = await boot()
    const { agent } = await granted(host)
    expect((await say(host, agent, 'use launch {"label": "one"}')).body.response).toContain('launched one')
    expect((await host.json('GET', `/api/approvals/grants?agent_id=${agent}`)).body).toMatchObject({
      total: 1,
      grants: [{ tool_name: 'launch', covers: 'exactly this call', uses: 1, granted_by: 'operator' }],
    })
    expect(await launched()).toEqual(['one', 'one'])
  })

  it('asks again when what was approved for the session is revoked', async () => {
    await using host = await boot()
    const { agent, grant } = await granted(host)
    expect(await host.json('DELETE', grant)).toMatchObject({ status: 200, body: { status: 'revoked' } })
    const again = say(host, agent, 'use launch {"label": "one"}')
    const [second] = await pending(host)
    expect(await launched()).toEqual(['one'])
    await host.json('POST', `/api/approvals/${second.id}/approve`)
    await again
    expect(await launched()).toEqual(['one', 'one'])
  })

  it('is revoked once, and only where it was approved for the session', async () => {
    await using host = await boot()
    const { agent, grant } = await granted(host)
    expect((await host.json('DELETE', grant)).status).toBe(200)
    expect((await host.json('DELETE', grant)).status).toBe(409)
    expect((await host.json('DELETE', `/api/approvals/grants/${agent}`)).status).toBe(404)
  })

  it('is approved for the session no longer when that is reset', async () => {
    await using host = await boot()
    const { agent } = await granted(host)
    await host.json('POST', `/api/agents/${agent}/session/reset`)
    await expect.poll(async () => (await host.json('GET', '/api/approvals/grants')).body.total).toBe(0)
  })

  it('is answered once: of twenty at the same time one wins, the others are told 409', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "x"}')
    const [request] = await pending(host)
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        host.json('POST', `/api/approvals/${request.id}/${n % 2 === 0 ? 'approve' : 'reject'}`),
      ),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 19 }, () => 409)])
    const won = answers.find(({ status }) => status === 200)?.body.status
    expect((await host.json('GET', `/api/approvals/${request.id}`)).body.status).toBe(won)
    await answer
    expect(await launched()).toEqual(won === 'approved' ? ['x'] : [])
    expect((await host.json('POST', `/api/approvals/${request.id}/reject`)).body.error).toMatchObject({
      code: 'conflict',
      details: { status: won },
    })
  })

  it('does not wait where the policy of the agent is never, and always does where that is always', async () => {
    await using host = await boot({ agents: { free: 'never' } })
    expect(
      (
        await say(
          host,
          await spawn(host, 'trusted', '[metadata]\napproval = "never"'),
          'use launch {"label": "trusted"}',
        )
      ).body.response,
    ).toContain('launched trusted')
    const [free, careful] = [await spawn(host, 'free'), await spawn(host, 'careful', '[metadata]\napproval = "always"')]
    expect((await say(host, free, 'use launch {"label": "free"}')).body.response).toContain('launched free')
    const answer = say(host, careful, 'use system_time {}')
    const [request] = await pending(host)
    expect(request).toMatchObject({ agent_name: 'careful', tool_name: 'system_time', risk_level: 'low' })
    await host.json('POST', `/api/approvals/${request.id}/approve`)
    expect((await answer).body.response).toMatch(/system_time: /)
  })

  it('ends its wait when the turn is stopped, and can be answered no more', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "x"}')
    const [request] = await pending(host)
    await host.json('POST', `/api/agents/${agent}/stop`)
    await answer
    await expect
      .poll(async () => (await host.json('GET', `/api/approvals/${request.id}`)).body)
      .toMatchObject({ status: 'expired', decided_by: 'the turn was stopped' })
    expect((await host.json('POST', `/api/approvals/${request.id}/approve`)).status).toBe(409)
    expect(await launched()).toEqual([])
  })

  it('ends its wait when the agent is killed', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "x"}')
    const [request] = await pending(host)
    await host.json('DELETE', `/api/agents/${agent}`)
    await answer
    await expect.poll(async () => (await host.json('GET', `/api/approvals/${request.id}`)).body.status).toBe('expired')
    expect(await launched()).toEqual([])
  })

  it('is a command of the shell too: what a message asked for runs when a person approves exactly it', async () => {
    await using host = await boot()
    const { body } = await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "sheller"\n[capabilities]\ntools = ["shell_exec"]\nshell = ["echo *"]\n',
    })
    const answer = say(host, body.agent_id, 'use shell_exec {"command": "echo it ran"}')
    const [request] = await pending(host)
    expect(request).toMatchObject({
      tool_name: 'shell_exec',
      risk_level: 'low',
      intent: 'run the program echo',
      session_covers: expect.stringContaining('any echo'),
      action_summary: 'shell_exec echo it ran',
      payload: { command: 'echo it ran' },
    })
    expect(request.description).toContain(
      'wants to run a program. The command came from a chat message, so it needs your approval.',
    )
    await host.json('POST', `/api/approvals/${request.id}/approve`)
    expect((await answer).body.response).toContain('it ran')
    const { entries } = (await host.json('GET', '/api/audit/recent?event_type=capability_check')).body
    expect(entries.map(({ details }: { details: string }) => details)).toContainEqual(
      expect.stringContaining('UserInput declassified for shell_exec by operator'),
    )
  })

  it('asks nobody for a command that its agent may not run, whatever is answered', async () => {
    await using host = await boot()
    const { body } = await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "sheller"\n[capabilities]\ntools = ["shell_exec"]\nshell = ["echo *"]\n',
    })
    for (const [command, why] of [
      ['echo a; echo b', 'The command needs a shell because of'],
      ['rm -rf x', 'This agent may not run "rm -rf x"'],
    ])
      expect((await say(host, body.agent_id, `use shell_exec ${JSON.stringify({ command })}`)).body.response).toContain(
        why,
      )
    expect((await host.json('GET', '/api/approvals')).body.approvals).toEqual([])
    const { entries } = (await host.json('GET', '/api/audit/recent?event_type=capability_check')).body
    expect(entries).toHaveLength(2)
  })

  it('cannot be approved by an agent: no tool answers approvals', async () => {
    await using host = await boot()
    const names: readonly string[] = (await host.json('GET', '/api/tools')).body.tools.map(
      (tool: Json) => tool.name ?? tool,
    )
    expect(names).toContain('launch')
    expect(names.filter((name) => /approv|reject/.test(name))).toEqual([])
  })

  it('cannot be approved by an agent over the network: what it fetches does not reach this machine', async () => {
    await using host = await boot()
    const { body } = await host.json('POST', '/api/agents', {
      manifest_toml: 'name = "sly"\n[capabilities]\ntools = ["*"]\nnetwork = ["*"]\n',
    })
    const { id } = (
      await host.json('POST', '/api/approvals', {
        agent_id: body.agent_id,
        tool_name: 'launch',
        payload: { label: 'sly' },
      })
    ).body
    for (const origin of [host.url, host.url.replace('127.0.0.1', 'localhost')]) {
      const { response } = (
        await say(
          host,
          body.agent_id,
          `use web_fetch {"url": "${origin}/api/approvals/${id}/approve", "method": "POST"}`,
        )
      ).body
      expect(response).toMatch(/web_fetch failed: Requests to .* are refused/)
    }
    expect((await host.json('GET', `/api/approvals/${id}`)).body.status).toBe('pending')
  })
})

describe('requests over the API', () => {
  it('are made in the words of the interface and of existing clients, and answer 201', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const one = await host.json('POST', '/api/approvals', {
      agent_id: agent,
      action: 'deploy',
      description: 'to production',
      payload: { version: 3 },
    })
    expect(one).toMatchObject({ status: 201, body: { status: 'pending' } })
    const two = await host.json('POST', '/api/approvals', {
      agent_id: agent,
      tool_name: 'shell_exec',
      action_summary: 'clean up',
    })
    expect((await host.json('GET', `/api/approvals/${one.body.id}`)).body).toMatchObject({
      action: 'deploy',
      tool_name: 'deploy',
      description: 'to production',
      payload: { version: 3 },
      risk_level: 'low',
    })
    const { approvals } = (await host.json('GET', '/api/approvals')).body
    expect(approvals.map(({ id, risk_level: risk, action_summary: summary }: Json) => [id, risk, summary])).toEqual([
      [one.body.id, 'low', 'deploy {"version":3}'],
      [two.body.id, 'critical', 'clean up'],
    ])
    await host.json('POST', `/api/approvals/${one.body.id}/reject`)
    expect((await host.json('GET', '/api/approvals')).body.approvals.map(({ id }: Json) => id)).toEqual([
      two.body.id,
      one.body.id,
    ])
    expect(
      (await host.json('GET', `/api/approvals?status=rejected&agent_id=${agent}&limit=1`)).body.approvals.map(
        ({ id }: Json) => id,
      ),
    ).toEqual([one.body.id])
  })

  it('approve an action beforehand: exactly that one passes, once', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const { body } = await host.json('POST', '/api/approvals', {
      agent_id: agent,
      tool_name: 'launch',
      payload: { label: 'planned' },
    })
    await host.json('POST', `/api/approvals/${body.id}/approve`)
    expect((await say(host, agent, 'use launch {"label": "planned"}')).body.response).toContain('launched planned')
    const again = say(host, agent, 'use launch {"label": "planned"}')
    const [request] = await pending(host)
    await host.json('POST', `/api/approvals/${request.id}/reject`)
    await again
    expect(await launched()).toEqual(['planned'])
  })

  it('are five for one agent at a time; the sixth is told 429', async () => {
    await using host = await boot()
    const [agent, other] = [await spawn(host), await spawn(host, 'other')]
    const ask = (id: string) => host.json('POST', '/api/approvals', { agent_id: id, action: 'a' })
    const statuses = await Promise.all(Array.from({ length: 8 }, () => ask(agent)))
    expect(statuses.map(({ status }) => status).sort()).toEqual([201, 201, 201, 201, 201, 429, 429, 429])
    expect((await ask(other)).status).toBe(201)
  })

  it.each([
    ['no action', { action: undefined }, 'action'],
    ['an empty action', { action: '' }, 'action'],
    ['a long tool name', { tool_name: 'x'.repeat(65) }, 'tool_name'],
    ['a long description', { description: 'x'.repeat(1025) }, 'description'],
    ['a long summary', { action_summary: 'x'.repeat(513) }, 'action_summary'],
    ['a payload that is no object', { payload: 'x' }, 'payload'],
    ['a list', { payload: [1] }, 'payload'],
    ['a timeout of 9', { timeout_secs: 9 }, 'timeout_secs'],
    ['a timeout of 301', { timeout_secs: 301 }, 'timeout_secs'],
    ['an agent that is no id', { agent_id: 'x' }, 'agent_id'],
    ['NUL', { action: 'a\0' }, 'action'],
  ])('with %s are refused, naming the field', async (_, wrong, field) => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = await host.json('POST', '/api/approvals', { agent_id: agent, action: 'a', ...wrong })
    expect(answer.status).toBe(400)
    expect(JSON.stringify(answer.body)).toContain(field)
    expect((await host.json('GET', '/api/approvals')).body).toEqual({ approvals: [], total: 0 })
  })

  it('for what does not exist are 404, for what is no id 400', async () => {
    await using host = await boot()
    const nobody = '00000000-0000-4000-8000-000000000000'
    expect((await host.json('POST', '/api/approvals', { agent_id: nobody, action: 'a' })).body.error.code).toBe(
      'agent_not_found',
    )
    for (const [method, rest] of [
      ['GET', ''],
      ['POST', '/approve'],
      ['POST', '/reject'],
    ] as const) {
      expect((await host.json(method, `/api/approvals/${nobody}${rest}`)).body.error).toMatchObject({
        code: 'approval_not_found',
      })
      expect((await host.json(method, `/api/approvals/1${rest}`)).status).toBe(400)
    }
    expect((await host.json('GET', '/api/approvals?limit=0')).status).toBe(400)
  })
})

describe('a restart', () => {
  it('while a turn waits: the turn goes on when it is approved afterwards, asks once and acts once', async () => {
    let agent: string
    let id: string
    {
      await using host = await boot({ timeout_secs: 300 })
      agent = await spawn(host)
      const gone = leave(host, agent, 'use launch {"label": "once"}')
      ;[{ id }] = (await pending(host)) as [{ id: string }]
      await settled(host, 'waiting')
      await host.stop()
      await gone
    }
    expect(await launched()).toEqual([])
    await using host = await boot({ timeout_secs: 300 })
    expect((await pending(host)).map((each) => each.id)).toEqual([id])
    await host.json('POST', `/api/approvals/${id}/approve`)
    await expect
      .poll(async () => (await host.json('GET', `/api/agents/${agent}/session`)).body.messages.at(-1)?.content)
      .toContain('launched once')
    expect(await launched()).toEqual(['once'])
    expect((await host.json('GET', '/api/approvals')).body.total).toBe(1)
  })

  it.each([
    ['approved just before the end, it is not asked for again', true, 'launched late', ['late']],
    ['approved in the database only, it is refused', false, 'its row was not written by a daemon', []],
  ])('while a turn waits: %s', async (_, isProven, expected, done) => {
    let agent: string
    {
      await using host = await boot({ timeout_secs: 300 })
      agent = await spawn(host)
      const gone = leave(host, agent, 'use launch {"label": "late"}')
      const [{ id }] = await pending(host)
      await settled(host, 'waiting')
      await host.stop()
      await gone
      await approveRow(id, isProven)
    }
    await using host = await boot({ timeout_secs: 300 })
    await expect
      .poll(async () => (await host.json('GET', `/api/agents/${agent}/session`)).body.messages.at(-1)?.content)
      .toContain(expected)
    expect(await launched()).toEqual(done)
    expect((await host.json('GET', '/api/approvals')).body.total).toBe(1)
  })

  it('while a turn waits, after its time: the turn is told no', async () => {
    let agent: string
    {
      await using host = await boot({ timeout_secs: 300 })
      agent = await spawn(host)
      const gone = leave(host, agent, 'use launch {"label": "never"}')
      await pending(host)
      await settled(host, 'waiting')
      await host.stop()
      await gone
    }
    const db = new Sqlite(join(home, 'data', 'svc.db'))
    db.exec("UPDATE approvals_request SET expires_at = '2026-01-01T00:00:00.000Z'")
    db.close()
    await using host = await boot({ timeout_secs: 300 })
    await expect
      .poll(async () => (await host.json('GET', `/api/agents/${agent}/session`)).body.messages.at(-1)?.content)
      .toContain('nobody approved it')
    expect(await launched()).toEqual([])
  })

  it('of the approvals alone leaves the turn waiting, and the answer reaches it', async () => {
    await using host = await boot()
    const agent = await spawn(host)
    const answer = say(host, agent, 'use launch {"label": "reloaded"}')
    const [{ id }] = await pending(host)
    await host.app.host.reload('approvals')
    expect((await pending(host)).map((each) => each.id)).toEqual([id])
    await host.json('POST', `/api/approvals/${id}/approve`)
    expect((await answer).body.response).toContain('launched reloaded')
    expect(await launched()).toEqual(['reloaded'])
  })

  it('keeps what is pending, and expires what ran out meanwhile', async () => {
    let ids: readonly string[]
    {
      await using host = await boot()
      const agent = await spawn(host)
      const ask = async () =>
        (await host.json('POST', '/api/approvals', { agent_id: agent, action: 'a' })).body.id as string
      ids = [await ask(), await ask()]
    }
    const db = new Sqlite(join(home, 'data', 'svc.db'))
    db.prepare("UPDATE approvals_request SET expires_at = '2026-01-01T00:00:00.000Z' WHERE id = ?").run(ids[0])
    db.close()
    await using host = await boot()
    const { approvals } = (await host.json('GET', '/api/approvals')).body
    expect(approvals.map(({ id, status, decided_by: by }: Json) => [id, status, by])).toEqual([
      [ids[1], 'pending', null],
      [ids[0], 'expired', 'timeout'],
    ])
    expect((await host.json('POST', `/api/approvals/${ids[0]}/approve`)).status).toBe(409)
    expect((await host.json('POST', `/api/approvals/${ids[1]}/approve`)).status).toBe(200)
  })
})
