import { cpSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { call, prepareHome } from './home.ts'
import type { FaultOptions, FaultReport } from './report.ts'

/** Code that throws in a handler, a promise or a stream costs one answer, is counted, and harms nobody else. */
export async function panic({ built, rounds }: FaultOptions): Promise<FaultReport> {
  using home = await prepareHome({ built })
  cpSync(
    fileURLToPath(new URL('../fixtures/plugins/trouble', import.meta.url)),
    join(home.path, 'plugins', 'trouble'),
    { recursive: true },
  )
  await using daemon = await home.start()
  const problems: string[] = []
  const panics = async (): Promise<number> => (await call(daemon, 'GET', '/api/health')).body.panic_count
  const before = await panics()
  let caused = 0
  let fine = 0
  const running = { on: true }
  const others = (async () => {
    while (running.on) {
      const [one, two] = await Promise.all([
        call(daemon, 'POST', '/test/trouble/fine'),
        call(daemon, 'POST', `/api/agents/${home.agent}/message`, { message: 'hello' }),
      ])
      if (one.status !== 200 || two.status !== 200)
        problems.push(`another request answered ${one.status}, ${two.status}`)
      fine += 2
    }
  })()
  for (let round = 0; round < rounds; round++) {
    for (const path of ['throw', 'reject']) {
      const { status, body, headers } = await call(daemon, 'POST', `/test/trouble/${path}`)
      caused++
      const text = JSON.stringify(body)
      if (status !== 500 || body.error.code !== 'internal_error') problems.push(`${path} answered ${status} ${text}`)
      if (body.error.request_id !== headers.get('x-request-id')) problems.push(`${path} has no id`)
      if (/trouble|shadow|TypeError|\.ts/.test(text)) problems.push(`${path} tells of itself: ${text}`)
    }
    const stream = await fetch(`${daemon.url}/test/trouble/stream`)
    const text = await stream.text()
    caused++
    if (!text.includes('"n":1') || !text.includes('error') || /trouble in a stream/.test(text))
      problems.push(`the stream said ${JSON.stringify(text)}`)
    if ((await call(daemon, 'POST', '/test/trouble/forgotten')).status !== 200)
      problems.push('a forgotten promise harmed its own request')
    caused++
  }
  running.on = false
  await others
  const counted = (await panics()) - before
  if (counted !== caused) problems.push(`${caused} defects were caused, ${counted} counted`)
  const restarts = async (of: typeof daemon): Promise<number> =>
    (await call(of, 'GET', '/api/health')).body.restart_count
  const first = await restarts(daemon)
  await daemon.kill()
  await using again = await home.start()
  if ((await restarts(again)) !== first + 1) problems.push('a start after a kill is not counted as a restart')
  await again.stop()
  await using last = await home.start()
  if ((await restarts(last)) !== first + 1)
    problems.push('a start after an orderly end is counted as a restart, or the count is lost')
  return { defects: caused, counted, others: fine, problems: [...new Set(problems)].slice(0, 5) }
}
