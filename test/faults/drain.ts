import { cpSync, statSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { setTimeout as delay } from 'node:timers/promises'
import { startFakeProvider } from '../support/fake-provider.ts'
import { call, json, prepareHome } from './home.ts'
import { beyond } from './report.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * SIGTERM under streams, sockets and running tools: nothing new is taken, everybody is told, what was interrupted
 * says so, and the next start has it all.
 */
export async function drain({ built, rounds }: FaultOptions): Promise<FaultReport> {
  await using fake = await startFakeProvider()
  using home = await prepareHome(
    { built },
    {
      SVC_PROVIDERS__OPENAI__BASE_URL: fake.url,
      SVC_PROVIDERS__OPENAI__API_KEY: 'test-key',
      SVC_PLUGINS__DRAIN_MS: '1500',
      SVC_PLUGINS__APPROVALS__POLICY: 'never',
    },
  )
  cpSync(
    fileURLToPath(new URL('../fixtures/plugins/trouble', import.meta.url)),
    join(home.path, 'plugins', 'trouble'),
    { recursive: true },
  )
  const problems: string[] = []
  const daemon = await home.start()
  const agents = await Promise.all(
    Array.from(
      { length: rounds },
      async (_, index) =>
        (
          await call(daemon, 'POST', '/api/agents', {
            manifest_toml: `name = "drain-${index}"\n[model]\nprovider = "openai"\nmodel = "fake-1"\n[capabilities]\ntools = ["*"]\n`,
          })
        ).body.agent_id as string,
    ),
  )
  const half = Math.floor(agents.length / 2)
  const talking = { on: true }
  // The first half streams without an end, the other waits for a tool.
  fake.always((request) => {
    const text = JSON.stringify(request.body.messages)
    if (text.includes('use the tool') && !text.includes('"role":"tool"'))
      return { calls: [{ name: 'slow', args: { ms: 60_000 } }] }
    return {
      text: (async function* () {
        for (let part = 0; talking.on; part++) {
          yield `${part} `
          await delay(40)
        }
      })(),
    }
  })
  let begun = 0
  const allBegun = Promise.withResolvers<void>()
  const streams = agents.map(async (id, index) => {
    const response = await fetch(`${daemon.url}/api/agents/${id}/message/stream`, {
      method: 'POST',
      headers: json,
      body: JSON.stringify({ message: index < half ? 'talk' : 'use the tool' }),
    })
    let text = ''
    let counted = false
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk).toString()
      if (!counted && /chunk|tool|text/.test(text)) {
        counted = true
        if (++begun === agents.length) allBegun.resolve()
      }
    }
    return text
  })
  const socket = new WebSocket(`${daemon.url.replace('http', 'ws')}/api/agents/${home.agent}/ws`)
  await new Promise((resolve) => {
    socket.addEventListener('message', resolve, { once: true })
  })
  const closed = new Promise<number>((resolve) => {
    socket.addEventListener('close', ({ code }) => resolve(code), { once: true })
  })
  await Promise.race([allBegun.promise, delay(20_000)])
  if (begun < agents.length) problems.push(`only ${begun} of ${agents.length} streams began`)

  const port = Number(new URL(daemon.url).port)
  const since = performance.now()
  const stopped = daemon.stop()
  let refusedMs: number | undefined
  for (let tried = 0; tried < 200 && refusedMs === undefined; tried++) {
    const refused = await new Promise<boolean>((resolve) => {
      const probe = connect(port, '127.0.0.1', () => {
        probe.destroy()
        resolve(false)
      })
      probe.on('error', () => resolve(true))
    })
    if (refused) refusedMs = performance.now() - since
    else await delay(5)
  }
  const texts = await Promise.all(streams.map((stream) => stream.catch((error: unknown) => `broken: ${String(error)}`)))
  const exit = await stopped
  const tookMs = performance.now() - since
  for (const [index, text] of texts.entries())
    if (!/done|error|interrupted/.test(text.slice(-400)))
      problems.push(`stream ${index} ended without a last event: …${text.slice(-120)}`)
  if (exit !== 0) problems.push(`the daemon ended with ${exit}`)
  if ((await closed) !== 1001) problems.push(`the socket was closed with ${await closed}`)
  if (tookMs > 30_000) problems.push(`it took ${Math.round(tookMs)} ms`)
  if (refusedMs === undefined) problems.push('the port was never closed')
  if ((statSync(join(home.path, 'data', 'svc.db-wal'), { throwIfNoEntry: false })?.size ?? 0) > 0)
    problems.push('the log of the database was not written back')

  await using again = await home.start()
  const states: Record<string, number> = {}
  for (const id of agents) {
    const { body } = await call(again, 'GET', `/api/agents/${id}/turns`)
    for (const turn of body.turns) states[turn.state] = (states[turn.state] ?? 0) + 1
    if (body.turns.length !== 1) problems.push(`${body.turns.length} turns of an agent are known`)
  }
  if ((states['running'] ?? 0) + (states['queued'] ?? 0) > 0)
    problems.push(`turns still run: ${JSON.stringify(states)}`)
  await again.stop()
  talking.on = false
  problems.push(
    ...beyond(built, 'ms until the port was closed', refusedMs ?? 0, 100),
    ...beyond(built, 'ms of the next start', again.bootMs, 5_000),
  )
  return {
    streams: agents.length,
    listener_closed_ms: Math.round(refusedMs ?? -1),
    exit_ms: Math.round(tookMs),
    next_boot_ms: Math.round(again.bootMs),
    states,
    problems: problems.slice(0, 5),
  }
}
