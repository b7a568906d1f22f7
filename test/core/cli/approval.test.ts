import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'
import { startCli } from './process.ts'

let home: string
let host: TestHost
let agent: string
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-approval-'))
  host = await startHost({ home, plugins: ['audit', 'agents', 'approvals'] })
  agent = (await host.json('POST', '/api/agents', { manifest_toml: 'name = "digger"\n' })).body.agent_id
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])
const ask = async (command: string): Promise<string> =>
  (await host.json('POST', '/api/approvals', { agent_id: agent, tool_name: 'shell_exec', payload: { command } })).body
    .id

describe('svc approval', () => {
  it('lists nothing where nothing was asked for', async () => {
    expect(await svc('approval', 'list')).toMatchObject({ code: 0, stdout: 'Nothing has needed approval.\n' })
    expect(JSON.parse((await svc('approval', 'list', '--json')).stdout)).toEqual({ approvals: [], total: 0 })
  })

  it('shows exactly what waits, and lets it be approved by the beginning of its id, once', async () => {
    const id = await ask('make\u001b[2K\u202e')
    const { stdout } = await svc('approval', 'list', '--pending')
    expect(stdout).toMatch(
      /^STATUS +RISK +TIME LEFT +AGENT +ID +WHAT\npending +critical +\d+ min(?: \d+ s)? +digger +\S+ +shell_exec make/,
    )
    expect(stdout).toContain(String.raw`make\u{1b}[2K\u{202e}`)
    expect(stdout).not.toContain('\u202e')
    const answer = await svc('approval', 'approve', id.slice(0, 8))
    expect(answer).toMatchObject({ code: 0 })
    expect(answer.stdout).toMatch(new RegExp(`^approved ${id}: digger may do this: shell_exec make`))
    const again = await svc('approval', 'reject', id)
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toContain('approved already')
    expect((await svc('approval', 'list', '--pending')).stdout).toBe('Nothing waits for approval.\n')
  })

  it('shows one whole, and is called approvals and deny as well', async () => {
    const id = await ask('ls -la\nrm x')
    const { code, stdout } = await svc('approvals', 'show', id.slice(0, 8))
    expect([code, stdout]).toEqual([0, expect.stringContaining('"command": "ls -la\\nrm x"')])
    expect(JSON.parse((await svc('approvals', 'show', id, '--json')).stdout)).toMatchObject({ id, status: 'pending' })
    expect((await svc('approvals', 'deny', id)).stdout).toContain(`rejected ${id}: digger may not do this`)
    expect((await svc('approvals', 'show', id)).stdout).toMatch(/decided +\S+ by operator/)
    expect((await svc('approvals')).stdout).toMatch(/^STATUS/)
    expect((await svc('approvals', 'show', 'ffff')).code).toBe(4)
  })

  it('rejects, and answers scripts in JSON', async () => {
    const id = await ask('ls')
    const { code, stdout } = await svc('approval', 'reject', id, '--json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ id, status: 'rejected' })
    expect((await host.json('GET', `/api/approvals/${id}`)).body.status).toBe('rejected')
  })

  it('says with exit code 4 that there is no such approval, and which wait', async () => {
    const id = await ask('pwd')
    expect(await svc('approval', 'approve', 'nothing')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining(`pending: ${id}`) as string,
    })
    expect(await svc('approval', 'approve', '00000000-0000-4000-8000-000000000000')).toMatchObject({ code: 4 })
    expect((await svc('approval', 'approve')).code).toBe(2)
  })
})

describe('svc chat', () => {
  it('says that the agent asks, and takes the answer while the agent waits for it', async () => {
    const place = await mkdtemp(join(tmpdir(), 'svc-approval-chat-'))
    const launcher = fileURLToPath(new URL('../../fixtures/plugins/launcher', import.meta.url))
    try {
      await using daemon = await startHost({
        home: place,
        config: { plugins: { paths: [launcher], launcher: { file: join(place, 'launches.log') } } },
      })
      await daemon.json('POST', '/api/agents', { manifest_toml: 'name = "digger"\n[capabilities]\ntools = ["*"]\n' })
      const chat = startCli(['chat', 'digger', '--home', place])
      chat.stdin.write('use launch {"label": "one"}\n')
      const [, id = ''] = await chat.prints(
        /digger wants to .* and waits for your answer \(.* left[^]*\n\n {4}launch\n {4}label: one\n[^]*\n {2}\/approve (\w{8}) or \/reject/,
      )
      chat.stdin.write('/approve nothing\n')
      await chat.prints(/there is no approval "nothing"/)
      chat.stdin.write(`/approve ${id}\n`)
      await chat.prints(/launched one/)
      chat.stdin.end()
      expect(await chat.ended).toMatchObject({
        code: 0,
        stderr: expect.stringContaining('approved: launch label: one') as string,
      })
    } finally {
      await rm(place, { recursive: true, force: true })
    }
  })
})

describe('standing approvals', () => {
  it('lists standing approvals and revokes one, by the beginning of its id', async () => {
    expect(await svc('approval', 'grants')).toMatchObject({
      code: 0,
      stdout: 'There are no standing approvals: every action needs its own.\n',
    })
    await using more = await startHost({ config: { plugins: { approvals: { policy: 'always' } } } })
    const svcOf = (...args: string[]): Promise<Answer> => runHere([...args, '--home', more.home])
    const { body } = await more.json('POST', '/api/agents', {
      manifest_toml: 'name = "keeper"\n[capabilities]\ntools = ["*"]\n',
    })
    const turn = more.json('POST', `/api/agents/${body.agent_id}/message`, { message: 'use system_time {}' })
    let waiting = ''
    await expect
      .poll(async () => (waiting = (await more.json('GET', '/api/approvals?status=pending')).body.approvals[0]?.id))
      .toBeTruthy()
    await more.json('POST', `/api/approvals/${waiting}/approve`, { scope: 'session' })
    await turn
    const { grants } = JSON.parse((await svcOf('approval', 'grants', '--json')).stdout)
    expect(grants).toMatchObject([{ agent_name: 'keeper', tool_name: 'system_time', granted_by: 'operator' }])
    const listed = (await svcOf('approval', 'grants')).stdout
    expect(listed).toMatch(/^AGENT +TOOL +COVERS +USED +GIVEN +BY +ID\nkeeper +system_time +exactly this call +0 +/)
    expect(await (await more.fetch('/api/metrics')).text()).toMatch(/^svc_approvals_standing 1$/m)
    expect(await svcOf('approval', 'revoke', 'ffffffff')).toMatchObject({ code: 4 })
    const revoked = await svcOf('approval', 'revoke', grants[0].id.slice(0, 8).toUpperCase())
    expect(revoked).toMatchObject({ code: 0 })
    expect(revoked.stdout).toMatch(new RegExp(`^revoked ${grants[0].id}: keeper asks again before system_time`))
    expect(await (await more.fetch('/api/metrics')).text()).toMatch(/^svc_approvals_standing 0$/m)
    expect(JSON.parse((await svcOf('approval', 'grants', '--json')).stdout)).toEqual({ grants: [], total: 0 })
  })
})
