import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startFakeProvider } from '../support/fake-provider.ts'
import { call, json, prepareHome } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/**
 * The configuration is read again and again, sound and broken, under requests and streams: nobody fails, and a broken
 * one changes nothing.
 */
export async function configuration({ built, rounds }: FaultOptions): Promise<FaultReport> {
  await using fake = await startFakeProvider()
  using home = await prepareHome(
    { built },
    { SVC_PROVIDERS__OPENAI__BASE_URL: fake.url, SVC_PROVIDERS__OPENAI__API_KEY: 'test-key' },
  )
  const file = join(home.path, 'config.toml')
  const problems: string[] = []
  await using daemon = await home.start()
  const {
    body: { agent_id: agent },
  } = await call(daemon, 'POST', '/api/agents', {
    manifest_toml: 'name = "streams"\n[model]\nprovider = "openai"\nmodel = "fake-1"\n',
  })
  const running = { on: true }
  let requests = 0
  let streamed = 0
  const words = Array.from({ length: 40 }, (_, index) => `${index} `)
  fake.always({ text: words, gapMs: 5 })
  const load = Promise.all([
    ...Array.from({ length: 20 }, async () => {
      while (running.on) {
        const { status } = await call(daemon, 'GET', '/api/agents').catch((error: unknown) => ({
          status: String(error),
        }))
        if (status !== 200) problems.push(`a request answered ${status}`)
        requests++
      }
    }),
    ...Array.from({ length: rounds >= 30 ? 50 : 20 }, async () => {
      const {
        body: { session_id: session },
      } = await call(daemon, 'POST', `/api/agents/${agent}/sessions`, {})
      while (running.on) {
        const response = await fetch(`${daemon.url}/api/agents/${agent}/message/stream`, {
          method: 'POST',
          headers: json,
          body: JSON.stringify({ message: 'count', session_id: session }),
          signal: AbortSignal.timeout(30_000),
        })
        const text = await response.text().catch((error: unknown) => String(error))
        if (response.status !== 200 || !text.includes('39') || !/"done":true/.test(text))
          problems.push(`a stream of ${response.status} ended …${text.slice(-160)}`)
        streamed++
      }
    }),
  ])
  for (let round = 0; round < rounds; round++) {
    const level = round % 2 === 0 ? 'debug' : 'info'
    writeFileSync(file, `log_level = "${level}"\n[tools]\ntimeout_secs = ${100 + round}\n`)
    const applied = await call(daemon, 'POST', '/api/config/reload')
    if (applied.status !== 200 || !applied.body.changed.includes('tools.timeout_secs'))
      problems.push(`a reload answered ${applied.status} ${JSON.stringify(applied.body)}`)
    const sound = readFileSync(file, 'utf8')
    writeFileSync(file, `${sound}nonsense = [\n`)
    const broken = await call(daemon, 'POST', '/api/config/reload')
    if (broken.status !== 400) problems.push(`a broken file answered ${broken.status}`)
    writeFileSync(file, sound.replace(level, 'loud').replace(String(100 + round), '7'))
    const half = await call(daemon, 'POST', '/api/config/reload')
    if (half.status !== 400) problems.push(`a wrong value answered ${half.status}`)
    const { body } = await call(daemon, 'GET', '/api/config')
    if (body.config.log_level !== level || body.config.tools.timeout_secs !== 100 + round)
      problems.push(
        `after a broken file the configuration is ${body.config.log_level}, ${body.config.tools.timeout_secs}`,
      )
    writeFileSync(file, sound)
  }
  running.on = false
  await load
  await daemon.stop()
  return { reloads: rounds * 3, requests, streams: streamed, problems: [...new Set(problems)].slice(0, 5) }
}
