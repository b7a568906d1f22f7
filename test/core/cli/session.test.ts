import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openChat } from '../../support/chat-stage.ts'
import type { ChatStage } from '../../support/chat-stage.ts'
import { runHere } from './here.ts'
import type { Answer } from './here.ts'

let home: string
let stage: ChatStage
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'svc-session-'))
  stage = await openChat({ home })
  stage.fake.always(({ body }) => ({ text: `heard ${String(body.messages?.at(-1)?.content)}` }))
})
afterAll(async () => {
  await stage[Symbol.asyncDispose]()
  await rm(home, { recursive: true, force: true })
})
const svc = (...args: string[]): Promise<Answer> => runHere([...args, '--home', home])
const ids = async (): Promise<string[]> =>
  (JSON.parse((await svc('session', 'list', '--json')).stdout) as { id: string }[]).map(({ id }) => id)

describe('svc session', () => {
  it('lists nothing before anything was said, and knows no such agent', async () => {
    expect(await svc('session', 'list')).toMatchObject({
      code: 0,
      stdout: 'There is no conversation with "assistant" yet.\n',
    })
    expect((await svc('session', 'list', 'nobody')).code).toBe(4)
    expect(await svc('session', 'show', '1')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('it has none yet') as string,
    })
  })

  it('reaches the conversation from before /new: by number, label, id and its beginning', async () => {
    await svc('chat', '-m', 'remember the milk')
    await stage.host.json('POST', `/api/agents/${stage.agent}/session/reset`)
    await svc('chat', '-m', 'something else')
    const [, old = ''] = await ids()
    const list = (await svc('session', 'list')).stdout
    expect(list).toMatch(/^ +NUMBER +TITLE +MESSAGES +BEGUN +ID\n\* +1 .*\n +2 .* 2 +\d{4}-.* UTC +[\da-f-]{36}\n$/)
    expect(await svc('session', 'label', '2', 'dairy')).toMatchObject({
      code: 0,
      stdout: `session ${old} is labelled "dairy"\n`,
    })
    for (const wanted of ['2', 'dairy', old, old.slice(0, 8)]) {
      const { code, stdout } = await svc('session', 'show', wanted)
      expect(code).toBe(0)
      expect(stdout).toMatch(
        /^dairy, 2 messages, .*\n\n\[1\] you, .* UTC:\nremember the milk\n\n\[2\] assistant, .*:\nheard /,
      )
    }
    expect(JSON.parse((await svc('session', 'show', 'dairy', '--json')).stdout)).toMatchObject({ message_count: 2 })
  })

  it('goes on in an old conversation and leaves the active one as it is', async () => {
    expect((await svc('chat', '--session', 'dairy', '-m', 'and bread')).stdout).toBe('heard and bread\n')
    expect((await svc('session', 'show', 'dairy')).stdout).toContain('dairy, 4 messages')
    expect((await svc('session', 'list')).stdout).toMatch(/\n\* +1 /)
    expect(await svc('chat', '--session', 'none', '-m', 'x')).toMatchObject({ code: 4 })
  })

  it('makes another one the active one', async () => {
    expect(await svc('session', 'switch', 'dairy')).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/ \(dairy\) is the active one now\n$/) as string,
    })
    expect((await svc('session', 'list')).stdout).toMatch(/\n\* +2 +dairy /)
  })

  it('branches one at a message', async () => {
    const { code, stdout } = await svc('session', 'branch', 'dairy', '--at', '2', '--label', 'cheese')
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^session [\da-f-]{36} \(cheese\) begins with 2 messages and is the active one now\n$/),
    ])
    expect((await svc('session', 'show', 'cheese')).stdout).toMatch(/heard remember the milk\n$/)
    expect(await svc('session', 'branch', 'dairy', '--at', '9')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('No message 9: this conversation has 4') as string,
    })
    await svc('session', 'switch', 'dairy')
    await svc('session', 'delete', 'cheese')
  })

  it('takes a label away, and deletes', async () => {
    expect((await svc('session', 'label', 'dairy', '--remove')).stdout).toMatch(/has no label now\n$/)
    expect((await svc('session', 'label', '1')).code).toBe(2)
    expect((await svc('session', 'label', '1', 'x'.repeat(5000))).code).toBe(1)
    const [first = ''] = await ids()
    expect((await svc('session', 'delete', first.slice(0, 8))).stdout).toMatch(/was removed, with its 2 messages\n$/)
    expect(await ids()).toHaveLength(1)
    expect(await svc('session', 'delete', '7')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('`svc session list` lists what there is') as string,
    })
    expect((await svc('session', 'show', '1', '--limit', 'many')).code).toBe(2)
  })
})
