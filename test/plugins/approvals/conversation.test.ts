import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startHost } from '../../support/host.ts'
import type { TestHost } from '../../support/host.ts'
import type { Json } from '../../support/json.ts'

type Frame = { readonly type: string } & Record<string, Json>
const launcher = fileURLToPath(new URL('../../fixtures/plugins/launcher', import.meta.url))
let folder: string
let host: TestHost
let serial = 0
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'svc-approvals-socket-'))
  host = await startHost({
    config: { plugins: { paths: [launcher], launcher: { file: join(folder, 'launches.log') } } },
  })
})
afterAll(async () => {
  await host[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})
const spawn = async (): Promise<string> =>
  (
    await host.json('POST', '/api/agents', {
      manifest_toml: `name = "socket-${serial++}"\n[capabilities]\ntools = ["*"]\n`,
    })
  ).body.agent_id

/** A conversation over a socket: what comes in, in order, without what comes by the clock. */
async function open(
  agent: string,
): Promise<
  { say(text: string): void; next(type: string): Promise<Frame>; readonly frames: readonly Frame[] } & Disposable
> {
  const socket = new WebSocket(`${host.url.replace('http', 'ws')}/api/agents/${agent}/ws`)
  const frames: Frame[] = []
  let read = 0
  let wake = (): void => {}
  socket.addEventListener('message', ({ data }) => {
    const frame: Frame = JSON.parse(String(data))
    if (frame.type !== 'agents_updated') frames.push(frame)
    wake()
  })
  const next = async (type: string): Promise<Frame> => {
    for (;;) {
      while (read < frames.length) {
        const frame = frames[read++]
        if (frame?.type === type) return frame
      }
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  }
  await next('connected')
  return {
    frames,
    next,
    say: (content) => socket.send(JSON.stringify({ type: 'message', content })),
    [Symbol.dispose]: () => socket.close(),
  }
}

describe('a conversation over a socket', () => {
  it('is told that the agent asks and what became of it, and answers with a command', async () => {
    const agent = await spawn()
    using talk = await open(agent)
    talk.say('use launch {"label": "one"}')
    const { approval } = await talk.next('approval')
    expect(approval).toMatchObject({
      agent_id: agent,
      tool_name: 'launch',
      action_summary: 'launch {"label":"one"}',
      risk_level: 'high',
      status: 'pending',
      decided_at: null,
    })
    talk.say('/approvals')
    expect((await talk.next('response'))['content']).toBe(
      `launch {"label":"one"} (high risk)\n/approve ${approval.id}\n/reject ${approval.id}`,
    )
    talk.say(`/approve ${approval.id.slice(0, 8)}`)
    await expect
      .poll(() => talk.frames.filter(({ type }) => type === 'response').map((frame) => frame['content']))
      .toEqual([
        expect.stringContaining('/approve '),
        'Approved, once: launch {"label":"one"}',
        expect.stringContaining('launched one'),
      ])
    expect(talk.frames.filter(({ type }) => type === 'approval').map((frame) => frame['approval'].status)).toEqual([
      'pending',
      'approved',
    ])
  })

  it('rejects with a command, and is told honestly what cannot be answered', async () => {
    const agent = await spawn()
    using talk = await open(agent)
    const answers = async (command: string): Promise<string> => {
      talk.say(command)
      return (await talk.next('response'))['content']
    }
    expect(await answers('/approvals')).toBe('Nothing of this agent waits for approval.')
    expect(await answers('/approve nothing')).toBe(
      'No approval nothing of this agent is pending. /approvals lists those that are.',
    )
    talk.say('use launch {"label": "two"}')
    const { approval } = await talk.next('approval')
    expect(await answers('/reject')).toContain(`Say which: /reject <id>\n\nlaunch {"label":"two"}`)
    talk.say(`/reject ${approval.id}`)
    await expect
      .poll(() =>
        talk.frames
          .filter(({ type }) => type === 'response')
          .slice(-2)
          .map((frame) => frame['content']),
      )
      .toEqual(['Rejected: launch {"label":"two"}', expect.stringContaining('a person rejected it')])
  })

  it('does not answer, or hear of, what another agent asks for', async () => {
    const [one, other] = [await spawn(), await spawn()]
    using talk = await open(one)
    using stranger = await open(other)
    talk.say('use launch {"label": "three"}')
    const { approval } = await talk.next('approval')
    stranger.say(`/approve ${approval.id}`)
    expect((await stranger.next('response'))['content']).toContain('of this agent is pending')
    expect(stranger.frames.filter(({ type }) => type === 'approval')).toEqual([])
    expect((await host.json('GET', `/api/approvals/${approval.id}`)).body.status).toBe('pending')
    talk.say('/stop')
    await talk.next('response')
  })
})
